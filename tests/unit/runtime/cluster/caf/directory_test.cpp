// Names come and go for ever, and what is remembered of them stays bounded.
#include "runtime/cluster/caf/directory.hpp"

#include "runtime/cluster/limits.hpp"

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <gtest/gtest.h>

namespace troupe::cluster::exchange {
namespace {

using Claim = Directory::Claim;
using Sender = Directory::Sender;

class DirectoryTest : public ::testing::Test {
 protected:
  DirectoryTest() : system_(config_) {
    // With an argument: CAF dereferences a null list of none, which library assertions refuse.
    handle_ = system_.spawn(
        [](caf::event_based_actor*, int) -> caf::behavior { return {[](int) {}}; }, 0);
  }
  ~DirectoryTest() override {
    caf::anon_send_exit(handle_, caf::exit_reason::kill);
    directory_.close();
  }
  static wire::Hello hello(const std::string& name, std::uint64_t epoch) {
    return {name, core::RunId{42}, epoch, ""};
  }
  // A name that comes and goes.
  bool visit(const std::string& name, std::uint64_t epoch) {
    if (!directory_.claim(hello(name, epoch), address_of(handle_))) return false;
    directory_.bind(hello(name, epoch), handle_);
    return directory_.drop(name, address_of(handle_)).has_value();
  }

  caf::actor_system_config config_;
  caf::actor_system system_;
  caf::actor handle_;
  Directory directory_;
};

TEST_F(DirectoryTest, NamesThatLeftTakeNoPlaceForEver) {
  for (std::uint64_t i = 0; i < limits::kPeerNames_max + 1; ++i)
    ASSERT_TRUE(visit("node/visitor-" + std::to_string(i), 1)) << i;
  EXPECT_TRUE(directory_.claim(hello("generator/0", 1), address_of(handle_)));
  // The last ones are remembered, the first is a stranger again.
  EXPECT_FALSE(directory_.claim(hello("node/visitor-4096", 0), address_of(handle_)));
  EXPECT_EQ(directory_.sender("node/visitor-4096", address_of(handle_)), Sender::kDeparted);
  EXPECT_EQ(directory_.sender("node/visitor-0", address_of(handle_)), Sender::kStranger);
}

TEST_F(DirectoryTest, AFenceOutlastsTheMemoryOfThoseWhoOnlyLeft) {
  directory_.bind(hello("generator/0", 3), handle_);
  ASSERT_TRUE(directory_.fence("generator/0", 3));
  for (std::uint64_t i = 0; i < limits::kPeerNames_max + 1; ++i)
    ASSERT_TRUE(visit("node/visitor-" + std::to_string(i), 1)) << i;
  EXPECT_EQ(directory_.sender("generator/0", address_of(handle_)), Sender::kFenced);
  EXPECT_FALSE(directory_.claim(hello("generator/0", 3), address_of(handle_)));
  EXPECT_EQ(directory_.claim(hello("generator/0", 4), address_of(handle_)).value(), Claim::kNew);
}

TEST_F(DirectoryTest, FencesAreBoundedToo) {
  for (std::uint64_t i = 0; i < limits::kPeerNames_max + 1; ++i) {
    const std::string name = "node/frozen-" + std::to_string(i);
    directory_.bind(hello(name, 1), handle_);
    ASSERT_TRUE(directory_.fence(name, 1));
  }
  EXPECT_EQ(directory_.sender("node/frozen-0", address_of(handle_)), Sender::kStranger);
  EXPECT_EQ(directory_.sender("node/frozen-1", address_of(handle_)), Sender::kFenced);
}

}  // namespace
}  // namespace troupe::cluster::exchange
