#include "specs/language/rate_keys.h"

namespace specs {

void visit_gemm_rates(KeyVisitor& visitor, std::vector<GemmRate>& rates) {
  visitor.list_of_tables({"gemm_rates", "measured square matrix products", {}, true}, rates,
                         [](KeyVisitor& keys, GemmRate& rate) {
                           keys.choice({"precision", "of the operands"}, rate.precision);
                           keys.integer({"size", "m = n = k", "needed"}, rate.size, {1, 1'000'000});
                           keys.quantity({"rate", "of the product", "needed"}, rate.flops_per_second,
                                         Unit::flops_per_second, positive);
                         });
}

void visit_collective_rates(KeyVisitor& visitor, std::vector<CollectiveRate>& rates) {
  visitor.list_of_tables(
      {"collective_rates", "measured collectives inside the node", {}, true}, rates,
      [](KeyVisitor& keys, CollectiveRate& rate) {
        keys.choice({"collective", "which"}, rate.collective);
        keys.integer({"ranks", "that take part"}, rate.ranks, {2, 1'000'000});
        keys.quantity({"latency", "of an empty one"}, rate.latency_seconds, Unit::seconds, {0, 10});
        keys.quantity({"bandwidth", "bytes of the whole tensor per second", "needed"}, rate.bytes_per_second,
                      Unit::bytes_per_second, positive);
      });
}

}  // namespace specs
