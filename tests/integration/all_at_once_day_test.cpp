// As all_at_once_test.cpp, with a reward that prints 2 GiB.
#include "tests/integration/all_at_once_support.hpp"

namespace troupe::test {

using AllAtOnceDay = AllAtOnce;
TEST_F(AllAtOnceDay, ARunWhoseRewardPrintsTwoGibibytesHasTheBitsOfACalmOne) {
  day(std::uint64_t{128} << 20, 900);
}

}  // namespace troupe::test
