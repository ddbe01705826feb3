// The gateway of a run as nodes meet it: many that start together all come in.
#include "apps/session/run_gateway.hpp"

#include "actors/company/pass.hpp"
#include "apps/session/node/join_flags.hpp"

#include <gtest/gtest.h>

#include <future>
#include <mutex>

namespace troupe::session {
namespace {

constexpr std::size_t kNodes = 200;

wire::Hello hello_of(std::size_t node, const std::string& pass) {
  const auto facts = actors::company::facts_of_pass(pass);
  EXPECT_TRUE(facts.has_value());
  return {"node/" + std::to_string(node), core::RunId{0}, facts ? facts->number : 0, pass};
}

TEST(RunGateway, TwoHundredNodesThatStartTogetherAllGetPassesThatAdmit) {
  char pattern[] = "/tmp/troupe_gateway_XXXXXX";
  const std::filesystem::path folder = ::mkdtemp(pattern);
  config::TrainConfig config;
  config.cluster.listen = "127.0.0.1:0";
  actors::company::Admission admission(core::RunId{77});
  std::mutex mutex;
  std::string notes;
  auto gateway = open_gateway(config, folder, (folder / "company.sock").string(), admission,
                              [&](const std::string& note) {
                                const std::lock_guard lock(mutex);
                                notes += note + "\n";
                              });
  ASSERT_TRUE(gateway) << gateway.error().message;
  JoinFlags flags;
  flags.join = folder.string();
  const auto target = find_company(flags);
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ(target->run_id, 77u);
  async::IoThreads io(2);
  std::vector<std::future<core::Result<std::string>>> entering;
  for (std::size_t i = 0; i < kNodes; ++i) {
    entering.push_back(std::async(std::launch::async, [&]() -> core::Result<std::string> {
      TROUPE_TRY_ASSIGN(tunnel, enter(io, *target, "company"));
      return tunnel->pass();
    }));
  }
  // Nobody shows a pass before the last one was given.
  std::vector<std::string> passes;
  for (auto& one : entering) {
    const auto pass = one.get();
    ASSERT_TRUE(pass) << pass.error().message << "\n" << notes;
    passes.push_back(*pass);
  }
  for (std::size_t i = 0; i < kNodes; ++i) {
    const auto admitted = admission.admit(hello_of(i, passes[i]), "host " + std::to_string(i));
    EXPECT_TRUE(admitted) << admitted.error().message;
  }
  close_gateway(**gateway, folder);
  EXPECT_EQ(notes, "");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace troupe::session
