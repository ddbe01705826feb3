#include "actors/gang/company_rendezvous.hpp"

namespace troupe::actors::gang {

core::Result<collective::Meeting> CompanyRendezvous::meet(int,
                                                          int size,
                                                          const collective::RankAddress& mine,
                                                          const std::atomic<bool>& given_up) {
  TROUPE_TRY_ASSIGN(met, ask_({role_, epoch_, arithmetic_, mine}, given_up));
  if (static_cast<int>(met.addresses.size()) != size) {
    return core::fail(core::ErrorCode::kData, "the company tells " + role_ + " of " +
                                                  std::to_string(met.addresses.size()) +
                                                  " ranks instead of " + std::to_string(size));
  }
  return collective::Meeting{std::move(met.key), std::move(met.addresses)};
}

}  // namespace troupe::actors::gang
