#include "runtime/parallel/vocabulary.h"

#include <algorithm>
#include <limits>

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/stack.h>
#include <torch/csrc/autograd/custom_function.h>

#include "runtime/kernels/matrix_products.h"
#include "runtime/kernels/softmax_kernels.h"
#include "runtime/monitor/memory_class.h"
#include "runtime/parallel/linear.h"

namespace runtime {

namespace {

/// The target's column in this slice; `outside` where it is on another rank or not counted.
struct LocalTargets {
  at::Tensor column;   ///< [rows], 0 where outside
  at::Tensor outside;  ///< [rows] bool
};

at::Tensor column_or_none(const LocalTargets& targets) {
  return targets.column.masked_fill(targets.outside, -1);
}

/// Of whole rows, summed over the tensor axis; `target` less the maximum.
kernels::RowStatistics row_statistics(const at::Tensor& logits, const LocalTargets& targets,
                                      const Communicator& tensor) {
  const kernels::RowStatistics own = kernels::row_statistics(logits, column_or_none(targets));
  kernels::RowStatistics row{own.maximum.clone(), at::Tensor(), at::Tensor()};
  tensor.all_reduce(row.maximum, Reduction::max);
  const at::Tensor sums = at::empty({2, logits.size(0)}, row.maximum.options());
  sums[0].copy_(own.maximum.sub(row.maximum).exp_().mul_(own.exponentials));
  sums[1].copy_(own.target.sub(row.maximum)).masked_fill_(targets.outside, 0);
  tensor.all_reduce(sums);
  row.exponentials = sums[0];
  row.target = sums[1];
  return row;
}

/// logits ← (softmax − one at the target) × weight of the row.
void turn_into_gradient(const at::Tensor& logits, const LocalTargets& targets,
                        const kernels::RowStatistics& row, const at::Tensor& weight) {
  kernels::turn_into_gradient(logits, column_or_none(targets), row.maximum, weight.div(row.exponentials),
                              weight);
}

bool is_token_parallel(const VocabularyLayout& layout) {
  return layout.mode == specs::OutputLayerMode::token_parallel;
}

template <class Gradient, class Value>
void add_rows(Gradient* gradient, std::int64_t gradient_rows, const std::int64_t* index, const Value* rows,
              std::int64_t count, std::int64_t width) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (index[i] < 0 || index[i] >= gradient_rows) continue;
    Gradient* target = gradient + index[i] * width;
    const Value* source = rows + i * width;
    for (std::int64_t j = 0; j < width; ++j)
      target[j] = static_cast<Gradient>(target[j] + static_cast<Gradient>(source[j]));
  }
}

}  // namespace

VocabularySlice vocabulary_slice(std::int64_t vocabulary, std::int64_t multiple, std::int64_t rank,
                                 std::int64_t size) {
  const std::int64_t unit = multiple * size;
  const std::int64_t padded = (vocabulary + unit - 1) / unit * unit;
  VocabularySlice slice;
  slice.rows = padded / size;
  slice.first = rank * slice.rows;
  slice.valid = std::clamp<std::int64_t>(vocabulary - slice.first, 0, slice.rows);
  return slice;
}

void scatter_add_rows(const at::Tensor& gradient, const at::Tensor& index, const at::Tensor& rows) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, gradient.scalar_type(), "scatter_add_rows", [&] {
    using Gradient = scalar_t;
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kBFloat16, at::kHalf, rows.scalar_type(), "scatter_add_rows", [&] {
      add_rows(gradient.data_ptr<Gradient>(), gradient.size(0), index.const_data_ptr<std::int64_t>(),
               rows.const_data_ptr<scalar_t>(), rows.size(0), rows.size(1));
    });
  });
}

at::Tensor VocabularyEmbedding::forward(const ForwardContext& context) const {
  const at::Tensor tokens = context.batch->tokens.reshape({-1});
  if (!is_token_parallel(layout_)) return look_up_slice(tokens);
  return at::index_select(table_->value(), 0,
                          layout_.sequence_parallel ? rows_of_rank(tokens, *tensor_) : tokens);
}

at::Tensor VocabularyEmbedding::look_up_slice(const at::Tensor& tokens) const {
  if (tensor_->size() == 1) return at::index_select(table_->value(), 0, tokens);
  const at::Tensor local = tokens.sub(layout_.slice.first);
  const at::Tensor outside = local.lt(0).logical_or_(local.ge(layout_.slice.rows));
  local.masked_fill_(outside, 0);
  at::Tensor output = at::index_select(table_->value(), 0, local);
  output.masked_fill_(outside.unsqueeze(1), 0);
  if (layout_.sequence_parallel) return reduce_scatter_rows(output, *tensor_);
  tensor_->all_reduce(output);
  return output;
}

void VocabularyEmbedding::backward(const at::Tensor& output_gradient, const ForwardContext& context) const {
  at::Tensor tokens = context.batch->tokens.reshape({-1});
  at::Tensor rows = output_gradient;
  if (is_token_parallel(layout_)) {
    tokens = rows_of_rank(tokens, *tensor_);
    if (!layout_.sequence_parallel) rows = rows_of_rank(rows, *tensor_);
  } else if (layout_.sequence_parallel) {
    rows = gather_rows(rows, *tensor_);
  }
  scatter_add_rows(table_->gradient(), tokens.sub(layout_.slice.first), rows.contiguous());
  table_->notify();
}

struct VocabularyLoss::Result {
  at::Tensor loss;
  at::Tensor logits_gradient;  ///< undefined where none was asked for
};

struct VocabularyLoss::Function : torch::autograd::Function<VocabularyLoss::Function> {
  static at::Tensor forward(torch::autograd::AutogradContext* node, const at::Tensor& x,
                            const VocabularyLoss* layer, ForwardContext* context) {
    const Result result = layer->compute(x, *context, context->training);
    node->save_for_backward({x, result.logits_gradient});
    node->saved_data["layer"] = reinterpret_cast<std::int64_t>(layer);
    node->saved_data["context"] = reinterpret_cast<std::int64_t>(context);
    return result.loss;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* node,
                                                 torch::autograd::variable_list) {
    const auto* layer = reinterpret_cast<const VocabularyLoss*>(node->saved_data["layer"].toInt());
    auto* context = reinterpret_cast<ForwardContext*>(node->saved_data["context"].toInt());
    const torch::autograd::variable_list saved = node->get_saved_variables();
    return {layer->backpropagate(saved[0].detach(), saved[1], *context), at::Tensor(), at::Tensor()};
  }
};

at::Tensor VocabularyLoss::forward(const at::Tensor& x, ForwardContext& context) const {
  return Function::apply(x, this, &context);
}

at::Tensor VocabularyLoss::logits(const at::Tensor& x) const {
  return kernels::multiply_by_transpose(input_rows(x), table_->value()).narrow(1, 0, layout_.slice.valid);
}

VocabularyLoss::VocabularyLoss(ParameterBlock& table, const VocabularyLayout& layout,
                               const Communicator& tensor)
    : table_(&table),
      layout_(layout),
      tensor_(&tensor),
      softmax_(is_token_parallel(layout) ? Communicator(tensor.label()) : tensor) {}

at::Tensor VocabularyLoss::input_rows(const at::Tensor& x) const {
  if (layout_.sequence_parallel) return is_token_parallel(layout_) ? x : gather_rows(x, *tensor_);
  return is_token_parallel(layout_) ? rows_of_rank(x, *tensor_) : x;
}

VocabularyLoss::Result VocabularyLoss::compute(const at::Tensor& x, const ForwardContext& context,
                                               bool with_gradient) const {
  const at::Tensor input = input_rows(x);
  const MemoryClassScope scope(specs::MemoryClass::logits_and_loss);
  const VocabularySlice& slice = layout_.slice;
  const at::Tensor logits = kernels::multiply_by_transpose(input, table_->value());
  if (slice.valid < slice.rows)
    logits.narrow(1, slice.valid, slice.rows - slice.valid).fill_(-std::numeric_limits<double>::infinity());

  at::Tensor targets = context.batch->targets.reshape({-1});
  if (is_token_parallel(layout_)) targets = rows_of_rank(targets, *tensor_);
  LocalTargets local{targets.sub(slice.first), at::Tensor()};
  local.outside = local.column.lt(0).logical_or_(local.column.ge(slice.valid)).logical_or_(targets.lt(0));
  local.column.masked_fill_(local.outside, 0);

  const kernels::RowStatistics row = row_statistics(logits, local, softmax_);
  const at::Tensor weight = targets.ge(0).to(row.target.scalar_type()).mul_(context.loss_weight);
  Result result;
  result.loss = row.exponentials.log().sub_(row.target).mul_(weight).sum(at::kDouble);
  if (is_token_parallel(layout_)) tensor_->all_reduce(result.loss);
  if (with_gradient) {
    turn_into_gradient(logits, local, row, weight);
    result.logits_gradient = logits;
  }
  return result;
}

at::Tensor VocabularyLoss::backpropagate(const at::Tensor& x, const at::Tensor& logits_gradient,
                                         ForwardContext& context) const {
  const at::Tensor input = input_rows(x);
  const at::Tensor computed =
      kernels::multiply_matrices(logits_gradient, table_->value());  // travels until the end
  at::Tensor input_gradient = computed;
  const bool scattered = layout_.sequence_parallel && !is_token_parallel(layout_) && tensor_->size() > 1;
  PendingWork communication;
  if (scattered) {
    communication = tensor_->reduce_scatter_in_place_async(input_gradient);
  } else if (is_token_parallel(layout_)) {
    if (!layout_.sequence_parallel) {
      input_gradient = at::empty_like(x);
      communication = tensor_->all_gather_into_async(input_gradient, computed);
    }
  } else {
    communication = tensor_->all_reduce_async(input_gradient);
  }
  context.weight_gradients.run(
      [this, input, logits_gradient] { table_->accumulate_product(logits_gradient, input); });
  communication.wait();
  return scattered ? rows_of_rank(input_gradient, *tensor_).clone() : input_gradient;
}

}  // namespace runtime
