#include "tests/published/published_run.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>

#include "cost_models/bucket_sizes.h"
#include "cost_models/stack_profile.h"
#include "specs/language/catalog.h"
#include "tests/published/nearest_device.h"
#include "tests/published/nemo_recipes.h"

namespace published {
namespace {

using specs::Precision;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::int64_t degree_of(const Row& row, std::string_view column) {
  return std::max<std::int64_t>(1, row.integer(column, 1));
}

/// gpus = tp · cp · pp · dp where dp is empty.
std::int64_t data_ranks_of(const Row& row) {
  if (row.has("dp")) return degree_of(row, "dp");
  return std::max<std::int64_t>(
      1, row.integer("gpus") / (degree_of(row, "tp") * degree_of(row, "cp") * degree_of(row, "pp")));
}

/// global_batch = micro_batch · accum · dp where accum is empty.
std::int64_t accumulation_of(const Row& row) {
  if (row.has("accum") || !row.has("global_batch")) return degree_of(row, "accum");
  return std::max<std::int64_t>(
      1, row.integer("global_batch") / (degree_of(row, "micro_batch") * data_ranks_of(row)));
}

/// Names of the catalog in any case, and what sources call them beside.
std::optional<Precision> precision_of(std::string_view name) {
  const std::string lower = lower_case(name);
  if (const auto known = specs::from_name<Precision>(lower)) return known;
  if (lower == "bfloat16" || lower == "bf16-mixed" || lower == "amp_bf16") return Precision::bf16;
  if (lower == "float16" || lower == "half" || lower == "fp16-mixed" || lower == "amp_fp16")
    return Precision::fp16;
  if (lower == "float32") return Precision::fp32;
  if (lower.starts_with("fp8") || lower.starts_with("float8")) return Precision::fp8;
  return std::nullopt;
}

std::optional<specs::ScheduleKind> schedule_of(std::string_view name) {
  const std::string lower = lower_case(name);
  if (lower.empty()) return specs::ScheduleKind::one_forward_one_backward;
  if (lower == "zb-1p") return specs::ScheduleKind::zero_bubble_h1;
  if (lower == "zb-2p") return specs::ScheduleKind::zero_bubble_h2;
  if (lower == "dualpipe") return specs::ScheduleKind::dual_pipe_v;
  return specs::from_name<specs::ScheduleKind>(lower);
}

std::string stack_of(std::string_view name) {
  const std::string lower = lower_case(name);
  if (lower == "fsdp2-torchtitan") return "torchtitan";
  // A stack that is known by another case of its name is that stack.
  return cost_models::stack_profile(lower, {}).exact ? lower : std::string(name);
}

/// What the other columns say that the formulas have no meaning for; empty where there is nothing.
std::string unknown_word(const Row& row) {
  struct Words {
    const char* column;
    std::initializer_list<std::string_view> known;
  };
  // What a source does not say is empty.
  for (const Words& words :
       {Words{"arch", {"", "gpt", "llama", "moe", "mla-moe"}},
        Words{"position", {"", "learned", "rope", "alibi", "none"}},
        Words{"recompute", {"", "none", "selective", "full"}}, Words{"attention", {"", "flash", "unfused"}}})
    if (std::find(words.known.begin(), words.known.end(), row.text(words.column)) == words.known.end())
      return "unknown " + std::string(words.column) + " " + std::string(row.text(words.column));
  const std::string_view offload = row.text("offload");
  if (!offload.empty() && offload != "none" && !contains(offload, "optimizer-cpu") &&
      !contains(offload, "param-cpu") && !contains(offload, "activation-cpu"))
    return "unknown offload " + std::string(offload);
  if (!schedule_of(row.text("schedule"))) return "unknown schedule " + std::string(row.text("schedule"));
  return {};
}

std::string wrong_number_of(const Row& row) {
  return wrong_number(row, {"layers",
                            "hidden",
                            "ffn_hidden",
                            "heads",
                            "kv_heads",
                            "head_dim",
                            "vocab",
                            "experts",
                            "top_k",
                            "shared_experts",
                            "expert_ffn_hidden",
                            "first_dense_layers",
                            "gpus",
                            "gpus_per_node",
                            "internode_gbit_per_gpu",
                            "tp",
                            "cp",
                            "pp",
                            "vp",
                            "dp",
                            "ep",
                            "etp",
                            "zero_stage",
                            "micro_batch",
                            "accum",
                            "global_batch",
                            "seq_len",
                            "step_time_s",
                            "memory_gib_per_gpu"});
}

specs::ModelSpec model_of(const Row& row) {
  specs::ModelSpec model;
  model.name = row.text("model");
  model.layers = row.integer("layers");
  model.hidden = row.integer("hidden");
  model.attention.heads = row.integer("heads", 1);
  model.attention.kv_heads = row.integer("kv_heads", model.attention.heads);
  model.attention.head_dim =
      row.integer("head_dim", model.hidden / std::max<std::int64_t>(1, model.attention.heads));
  model.feed_forward.hidden = row.integer("ffn_hidden");
  model.feed_forward.gated = row.text("gated_ffn") == "1";
  model.vocabulary = row.integer("vocab");
  if (row.text("family") == "vtrain-single-node") {
    // The source's model gives each tensor rank V / t rows, rounded down and without padding.
    const std::int64_t tensor = std::max<std::int64_t>(1, row.integer("tp", 1));
    model.vocabulary = model.vocabulary / tensor * tensor;
    model.vocabulary_multiple = 1;
  }
  model.tied_embeddings = row.text("tied_embeddings") == "1";
  const std::string_view position = row.text("position");
  model.positions = row.integer("seq_len");
  model.position_encoding = position == "rope"    ? specs::PositionEncoding::rotary
                            : position == "alibi" ? specs::PositionEncoding::alibi
                                                  : specs::PositionEncoding::learned;
  const bool biased = !model.feed_forward.gated && position != "rope";
  model.attention.qkv_bias = model.attention.output_bias = model.feed_forward.bias = biased;
  if (model.feed_forward.gated) model.normalization = specs::Normalization::rms_norm;
  model.norm_bias = !model.feed_forward.gated;
  if (row.text("arch") == "mla-moe") {
    model.attention.latent.emplace();
    const bool direct_queries = contains(row.text("model"), "oonlight");
    model.attention.latent->query_rank = direct_queries ? 0 : 1536;
    model.attention.head_dim = 128;
  }
  if (row.integer("experts") > 0) {
    model.mixture.emplace();
    model.mixture->experts = row.integer("experts");
    model.mixture->top_k = row.integer("top_k", 1);
    model.mixture->expert_hidden = row.integer("expert_ffn_hidden", model.feed_forward.hidden);
    model.mixture->shared_experts = row.integer("shared_experts");
    model.mixture->shared_expert_hidden = model.mixture->shared_experts * model.mixture->expert_hidden;
    model.mixture->first_dense_layers = row.integer("first_dense_layers");
  }
  const std::string_view variant = row.text("variant");
  if (contains(variant, "mtp")) model.prediction_layers = 1;
  if (contains(variant, "sliding_window")) {
    model.attention.sliding_window = 128;
    model.attention.sliding_every = 2;
  }
  return model;
}

// Per device, where the source does not say: the reference system of each generation.
double default_network_gbit(std::string_view family, std::string_view device) {
  // Trained on 40 GB A100s at AWS: p4d.24xlarge, 400 Gbit/s a node.
  if (family == "pythia") return 50;
  if (contains(device, "v100")) return 100;
  if (contains(device, "a100") || contains(device, "a800")) return 200;
  if (contains(device, "b300")) return 800;
  return 400;
}

std::string cluster_of(const Row& row, specs::ClusterSpec& cluster, std::string& stand_in) {
  std::string device(row.text("gpu"));
  if (device.empty()) return "no gpu";
  specs::ClusterGroup group;
  const auto find_node = [&group](const std::string& wanted) {
    for (const std::string& name : specs::catalog_names(specs::CatalogKind::node)) {
      if (name == "localhost") continue;
      const auto node = specs::catalog_node(name);
      if (!node || node->device.name != wanted) continue;
      group.node = *node;
      return true;
    }
    return false;
  };
  if (!find_node(device)) {
    stand_in = nearest_device(device);
    if (stand_in.empty()) return "the catalog has no device like " + device;
    device = stand_in;
    find_node(device);
  }
  group.node.devices = row.integer("gpus_per_node", group.node.devices);
  const std::int64_t devices = row.integer("gpus", 1);
  group.nodes = (devices + group.node.devices - 1) / group.node.devices;
  cluster.groups = {group};
  const std::string_view fabric = row.text("fabric");
  cluster.network.kind = fabric == "roce"       ? specs::NetworkKind::roce
                         : fabric == "ethernet" ? specs::NetworkKind::ethernet
                         : fabric == "efa"      ? specs::NetworkKind::efa
                                                : specs::NetworkKind::infiniband;
  const double gbit = row.number("internode_gbit_per_gpu", default_network_gbit(row.text("family"), device));
  cluster.network.node_bytes_per_second = gbit * 1e9 / 8 * static_cast<double>(group.node.devices);
  return {};
}

std::string training_of(const Row& row, specs::TrainingSpec& training) {
  const auto precision = precision_of(row.text("precision"));
  if (!precision) return "unknown precision " + std::string(row.text("precision"));
  training.precision = *precision;
  training.global_batch =
      row.integer("global_batch", degree_of(row, "micro_batch") * accumulation_of(row) * data_ranks_of(row));
  training.sequence_length = row.integer("seq_len");
  training.attention = row.text("attention") == "unfused" ? specs::AttentionImplementation::unfused
                                                          : specs::AttentionImplementation::flash;
  training.compile = row.text("compile") == "1";
  training.stack = stack_of(row.text("stack"));
  training.stack_release = row.text("release");
  const std::string_view family = row.text("family");
  if (family.starts_with("vtrain")) training.stack_release = "vtrain";
  if (family.starts_with("nemo-")) training.stack_release = family.substr(5);
  const std::string_view variant = row.text("variant");
  for (const char* feature : {"async_tp", "float8_rowwise", "layers_only", "liger", "no_torch_ddp"})
    if (contains(variant, feature)) training.stack_features.emplace_back(feature);
  if (contains(lower_case(row.text("precision")), "row") && *precision == Precision::fp8)
    training.stack_features.emplace_back("float8_rowwise");
  for (std::string& feature : recipe_features(row)) training.stack_features.push_back(std::move(feature));
  if (contains(row.text("note"), "fused cross-entropy"))
    training.stack_features.emplace_back("fused_cross_entropy");
  if (training.compile && contains(row.text("source"), "2025"))
    training.stack_features.emplace_back("compiled_loss");
  if (row.text("arch") == "mla-moe" && training.stack == "nemo")
    training.stack_features.emplace_back("balanced_stages");
  const bool fp32_gradients = contains(variant, "fp32_gradients") ||
                              (*precision == Precision::bf16 &&
                               (training.stack == "megatron-deepspeed" || training.stack == "megatron-core"));
  // BigScience's bf16 optimizer accumulates in fp32 only from 28 February on.
  const bool early_bf16 = training.stack == "megatron-deepspeed" && contains(row.text("note"), "02-17");
  const Precision half = *precision == Precision::fp16 ? Precision::fp16 : Precision::bf16;
  training.reduction_precision =
      (fp32_gradients && !early_bf16) || contains(variant, "amp") ? Precision::fp32 : half;
  training.gradient_precision =
      (fp32_gradients && !early_bf16) || training.stack == "megatron-core" ? Precision::fp32 : half;
  return {};
}

std::uint32_t modules_of(std::string_view detail) {
  using specs::RecomputedModule;
  std::uint32_t bits = 0;
  const auto add = [&](std::string_view name, RecomputedModule module) {
    if (contains(detail, name)) bits |= static_cast<std::uint32_t>(module);
  };
  add("core_attn", RecomputedModule::core_attention);
  add("layernorm", RecomputedModule::normalization);
  add("moe_act", RecomputedModule::expert_activation);
  add("mla_up_proj", RecomputedModule::latent_up_projection);
  if (detail == "op") bits |= static_cast<std::uint32_t>(RecomputedModule::element_wise);
  if (detail == "mlp" || contains(detail, "/mlp") || contains(detail, "mlp/"))
    bits |= static_cast<std::uint32_t>(RecomputedModule::feed_forward);
  return bits;
}

specs::RegularPlacement placement_of(const Row& row, const specs::ModelSpec& model) {
  specs::RegularPlacement placement;
  const auto degree = [&row](std::string_view column) { return degree_of(row, column); };
  placement.tensor = degree("tp");
  placement.context = degree("cp");
  placement.pipeline = degree("pp");
  placement.data = data_ranks_of(row);
  placement.expert = degree("ep");
  placement.expert_tensor = row.has("etp") ? degree("etp") : placement.tensor;
  if (row.integer("experts") == 0) placement.expert = placement.expert_tensor = 1;
  placement.micro_batch = degree("micro_batch");
  placement.accumulation = accumulation_of(row);
  placement.virtual_stages = placement.pipeline > 1 ? degree("vp") : 1;
  placement.schedule =
      schedule_of(row.text("schedule")).value_or(specs::ScheduleKind::one_forward_one_backward);
  if (placement.schedule == specs::ScheduleKind::one_forward_one_backward && placement.virtual_stages > 1)
    placement.schedule = specs::ScheduleKind::interleaved;
  const bool in_v_shape = placement.schedule == specs::ScheduleKind::zero_bubble_v ||
                          placement.schedule == specs::ScheduleKind::dual_pipe_v;
  if (placement.pipeline == 1)
    placement.schedule = specs::ScheduleKind::one_forward_one_backward;
  else if (in_v_shape)
    placement.virtual_stages = 2;
  placement.sequence_parallel = row.text("sequence_parallel") == "1";
  std::string_view recompute = row.text("recompute");
  // The record infers it for this source from the defaults of a configuration. What a layer's time grows by
  // from hidden size 1024 to 2048 leaves no room for it: 302 MFLOP a token in 1.1 µs would be nine tenths of
  // the peak or more for products, attention and element-wise work together.
  if (row.text("family") == "vtrain-single-node") recompute = "none";
  if (recompute == "full") placement.recomputation = specs::Recomputation::full;
  if (recompute == "selective") {
    placement.recomputation = specs::Recomputation::selective;
    placement.recomputed_modules = modules_of(row.text("recompute_detail"));
  }
  placement.zero.stage = row.integer("zero_stage");
  if (row.text("zero_scope") == "node") placement.zero.scope = specs::ShardScope::node;
  const std::string_view offload = row.text("offload");
  if (contains(offload, "optimizer-cpu")) placement.offload.optimizer = {specs::OffloadDevice::cpu, 8};
  const auto layers = offload.find("activation-cpu:");
  if (layers != std::string_view::npos) {
    const double moved = std::atof(std::string(offload.substr(layers + 15)).c_str());
    placement.offload.activations = {
        specs::OffloadDevice::cpu,
        static_cast<std::int64_t>(std::lround(8 * moved / static_cast<double>(model.layers)))};
  }
  return placement;
}

// Whole layers: evenly where they divide; one fewer at both ends, which hold the tables, where that divides;
// else the remainder one each to the first stages.
specs::Placement cut_of(const specs::RegularPlacement& regular, std::int64_t blocks) {
  specs::Placement placement = specs::regular_placement(regular, blocks);
  const std::int64_t stages = static_cast<std::int64_t>(placement.stages.size());
  const bool short_ends = blocks % stages != 0 && (blocks + 2) % stages == 0;
  std::int64_t next = 0;
  for (std::int64_t index = 0; index < stages; ++index) {
    specs::PipelineStage& stage = placement.stages[static_cast<std::size_t>(index)];
    const bool first = index == 0;
    const bool last = index == stages - 1;
    const std::int64_t layers = short_ends ? (blocks + 2) / stages - (first ? 1 : 0) - (last ? 1 : 0)
                                           : blocks / stages + (index < blocks % stages ? 1 : 0);
    stage.units.first = first ? 0 : specs::attention_unit(next);
    next += layers;
    stage.units.end = last ? specs::unit_count(blocks) : specs::attention_unit(next);
    if (!stage.recomputation.empty()) stage.recomputation.front().layers = layers;
  }
  return placement;
}

// Full recomputation of every second layer, however the table marks it.
template <class Run>
void recompute_every_second(std::vector<Run>& runs) {
  constexpr auto none = static_cast<std::size_t>(specs::Recomputation::none);
  constexpr auto selective = static_cast<std::size_t>(specs::Recomputation::selective);
  constexpr auto full = static_cast<std::size_t>(specs::Recomputation::full);
  for (Run& run : runs)
    for (cost_models::ModeCounts* counts :
         {&run.counts.attention, &run.counts.feed_forward, &run.counts.mixture}) {
      const double layers = (*counts)[selective] + (*counts)[full];
      (*counts)[none] += layers / 2;
      (*counts)[full] = layers / 2;
      (*counts)[selective] = 0;
    }
}

std::string joined(const Row& row, std::initializer_list<const char*> columns) {
  std::string key;
  for (const char* column : columns) {
    key += row.text(column);
    key += '|';
  }
  return key;
}

}  // namespace

std::string convert(const Row& row, PublishedRun& run) {
  run.id = row.text("id");
  run.family = row.text("family");
  run.device = row.text("gpu");
  if (std::string reason = wrong_number_of(row); !reason.empty()) return reason;
  for (const char* needed :
       {"layers", "hidden", "ffn_hidden", "heads", "vocab", "seq_len", "micro_batch", "gpus"})
    if (row.integer(needed) <= 0) return std::string("no ") + needed;
  run.experiment.model = model_of(row);
  constexpr std::int64_t most_layers = 100'000;
  if (row.integer("layers") > most_layers) return "more layers than " + std::to_string(most_layers);
  for (const char* degree : {"tp", "cp", "pp", "vp", "dp", "ep", "etp", "accum", "gpus_per_node", "kv_heads",
                             "head_dim", "global_batch"})
    if (row.has(degree) && row.integer(degree) < 1)
      return std::string(degree) + " is " + std::string(row.text(degree));
  if (row.integer("experts") > 0 && row.integer("top_k") <= 0) return "experts without top_k";
  if (std::string reason = unknown_word(row); !reason.empty()) return reason;
  const std::int64_t ranks =
      degree_of(row, "tp") * degree_of(row, "cp") * degree_of(row, "pp") * data_ranks_of(row);
  if (ranks != row.integer("gpus"))
    return "gpus " + std::to_string(row.integer("gpus")) +
           " is not tp · cp · pp · dp = " + std::to_string(ranks);
  if (row.integer("experts") < 0 || row.integer("zero_stage") < 0 || row.integer("zero_stage") > 3)
    return "experts or zero_stage out of range";
  if (row.integer("heads") > row.integer("hidden") && !row.has("head_dim"))
    return "more heads than hidden elements";
  if (std::string reason = cluster_of(row, run.experiment.cluster, run.device_stand_in); !reason.empty())
    return reason;
  if (std::string reason = training_of(row, run.experiment.training); !reason.empty()) return reason;
  run.placement = placement_of(row, run.experiment.model);
  const cost_models::StackProfile profile = cost_models::stack_profile(run.experiment.training);
  run.placement.buckets =
      cost_models::bucket_sizes(run.experiment, cost_models::catalog_profile(profile), run.placement);
  const std::int64_t blocks = specs::block_count(run.experiment.model);
  if (blocks < run.placement.pipeline * run.placement.virtual_stages)
    return "fewer layers than pipeline stages";
  run.cut = cost_models::pipeline_cut(run.experiment.model, cut_of(run.placement, blocks));
  if (contains(row.text("recompute_detail"), "every 2nd")) {
    recompute_every_second(run.cut.ranks);
    recompute_every_second(run.cut.stages);
  }
  run.step_seconds = row.number("step_time_s");
  run.mixture = run.experiment.model.mixture.has_value();
  run.low_precision = run.experiment.training.precision >= Precision::fp8;
  if (!profile.exact) run.stack_stand_in = profile.stand_in;
  run.identity = joined(row, {"family",
                              "model",
                              "arch",
                              "layers",
                              "hidden",
                              "ffn_hidden",
                              "heads",
                              "kv_heads",
                              "vocab",
                              "gpu",
                              "gpus",
                              "tp",
                              "cp",
                              "pp",
                              "vp",
                              "dp",
                              "ep",
                              "etp",
                              "zero_stage",
                              "zero_scope",
                              "offload",
                              "micro_batch",
                              "accum",
                              "global_batch",
                              "seq_len",
                              "recompute",
                              "recompute_detail",
                              "sequence_parallel",
                              "attention",
                              "compile",
                              "precision",
                              "schedule",
                              "release",
                              "variant"});
  run.job = joined(row, {"family", "model", "gpus", "global_batch", "seq_len", "precision"});
  return {};
}

void need_run_columns(const std::filesystem::path& path, const Table& table) {
  need_columns(path, table,
               {"id", "family", "stack", "layers", "hidden", "ffn_hidden", "heads", "vocab", "gpu", "gpus",
                "seq_len", "micro_batch", "precision", "confidence"});
}

std::vector<PublishedRun> merge_identical(std::vector<PublishedRun> runs) {
  std::map<std::string, std::vector<double>> times;
  for (const PublishedRun& run : runs) times[run.identity].push_back(run.step_seconds);
  std::vector<PublishedRun> merged;
  for (PublishedRun& run : runs) {
    std::vector<double>& all = times[run.identity];
    if (all.empty()) continue;
    std::sort(all.begin(), all.end());
    run.step_seconds = (all[(all.size() - 1) / 2] + all[all.size() / 2]) / 2;
    run.repeats = all.size();
    all.clear();
    merged.push_back(std::move(run));
  }
  return merged;
}

RepeatNoise repeat_noise(const std::vector<PublishedRun>& runs) {
  std::map<std::string, std::vector<double>> times;
  for (const PublishedRun& run : runs) times[run.identity].push_back(run.step_seconds);
  RepeatNoise noise;
  for (auto& [identity, all] : times) {
    if (all.size() < 2) continue;
    std::sort(all.begin(), all.end());
    const double median = (all[(all.size() - 1) / 2] + all[all.size() / 2]) / 2;
    for (const double time : all) noise.mean_deviation += std::abs(time / median - 1);
    noise.repeated += all.size();
  }
  if (noise.repeated > 0) noise.mean_deviation /= static_cast<double>(noise.repeated);
  return noise;
}

}  // namespace published
