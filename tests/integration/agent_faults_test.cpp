// Environments that hang or die at one row: that row alone is replaced, and what the run leaves is
// what it leaves when the row is refused at once.
#include "sick_environments.hpp"

namespace troupe::test {

class AgentFaults : public SickEnvironments {};

TEST_F(AgentFaults, AStepThatHangsOrDiesCostsItsRowAndNoOther) {
  const auto refused = played("refused", "def", "raise ValueError('no such row')");
  const std::size_t replaced = times_in(refused->log(), " replaced: ");
  EXPECT_GE(replaced, 1u) << refused->log();
  const std::vector<std::array<std::string, 3>> cases = {{"plain", "def", "time.sleep(3600)"},
                                                         {"dies", "def", "os._exit(3)"}};
  for (const auto& [name, kind, how] : cases) {
    SCOPED_TRACE(name);
    const auto run = played(name, kind, how);
    expect_same_bits(refused->folder(), run->folder(), 4);
    EXPECT_EQ(times_in(run->log(), " replaced: "), replaced) << run->log();
    expect_clean_ledger(run->folder());
  }
}

}  // namespace troupe::test
