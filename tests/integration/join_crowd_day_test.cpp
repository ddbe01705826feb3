// Two hundred nodes, each a process, join one run at the same moment and all come in; the run goes
// on meanwhile. They offer a role that the head's own process plays already, so they load no model.
// TROUPE_CROWD sets another number. Takes about 6 GB of memory: label `full`.
#include "tests/integration/join_support.hpp"

#include <algorithm>
#include <deque>

namespace troupe::test {
namespace {

class JoinCrowdDay : public Joining {
 protected:
  static std::size_t crowd() {
    const char* const number = std::getenv("TROUPE_CROWD");
    return number != nullptr ? std::stoul(number) : 200;
  }
};

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST_F(JoinCrowdDay, AllNodesThatStartAtOnceComeIn) {
  Background run = head("run", {"--train.max_steps", "100000", "--ckpt.save_steps", "100000"});
  ASSERT_TRUE(within(60, [&] { return updates_of("run") > 1; })) << run.text();
  std::deque<Background> nodes;
  for (std::size_t i = 0; i < crowd(); ++i) {
    const std::string name = "n" + std::to_string(i);
    nodes.push_back(
        start({"node", "--join", (files_ / "run").string(), "--roles", "reference", "--name", name},
              name));
  }
  const auto joined = [&] {
    return count(text_of(files_ / "run" / "troupe.log"), " joined from ");
  };
  const std::size_t own = joined();
  EXPECT_TRUE(within(300,
                     [&] {
                       return std::all_of(nodes.begin(), nodes.end(), [](const Background& node) {
                         return node.says("is in the company of");
                       });
                     }))
      << joined() << " of " << crowd() << " joined, " << own << " of them of the head";
  const Ended status = ends({"status", "--join", (files_ / "run").string()}, 60);
  EXPECT_EQ(status.status, 0) << status.text;
  double memory_mb = 0;
  std::size_t again = 0;
  for (std::size_t i = 0; i < crowd(); ++i) {
    EXPECT_TRUE(nodes[i].running()) << nodes[i].text();
    EXPECT_NE(status.text.find("n" + std::to_string(i)), std::string::npos) << i;
    memory_mb += nodes[i].memory_mb("VmRSS:");
    again += nodes[i].says("tries again") ? 1 : 0;
  }
  RecordProperty("memory_mb", static_cast<int>(memory_mb));
  RecordProperty("nodes_that_tried_again", static_cast<int>(again));
  const std::size_t before = updates_of("run");
  EXPECT_TRUE(within(120, [&] { return updates_of("run") > before; })) << "the run stands still";
  run.signal(SIGINT);
  EXPECT_EQ(run.wait(120), 130) << run.text();
  for (Background& node : nodes)
    EXPECT_EQ(node.wait(60), 0) << node.text();
  expect_clean_ledger("run");
}

}  // namespace
}  // namespace troupe::test
