// A run among faults of all kinds has the bits of a calm one. In full: all_at_once_day_test.cpp.
#include "tests/integration/all_at_once_support.hpp"

namespace troupe::test {

using AllAtOnceShort = AllAtOnce;
TEST_F(AllAtOnceShort, ARunAmongFaultsHasTheBitsOfACalmOne) {
  day(std::uint64_t{4} << 20, 120);
}

}  // namespace troupe::test
