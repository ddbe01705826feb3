// The policy role over the loopback network: it learns what the data role pages out, in ticket
// order, publishes versions that an engine can fetch, and accounts for its time.
#include "actors/policy/policy_role.hpp"

#include "actors/protocol/ask.hpp"
#include "actors/protocol/role_adapter.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/cluster/loopback/loopback.hpp"
#include "runtime/learn/trainers.hpp"
#include "runtime/weights/local_channel.hpp"
#include "tests/unit/actors/host_support.hpp"
#include "tests/unit/runtime/learn/fixture.hpp"

#include <gtest/gtest.h>

#include <future>

namespace troupe::actors::policy {
namespace {

learn::TrainerSettings settings() {
  learn::TrainerSettings all;
  all.total_steps = 10;
  return all;
}

std::unique_ptr<learn::PolicyTrainer> trainer_of(core::TeamRunner& team) {
  auto params = std::make_unique<model::ParamStore>(learn::tiny_spec());
  model::randomise(*params, 3, 0.2f);
  auto made = (*learn::trainers())->policy(std::move(params), settings(), team);
  EXPECT_TRUE(made.has_value());
  return std::move(made).value();
}

// Pages of two groups.
class Pages {
 public:
  explicit Pages(std::vector<experience::Group> groups) : groups_(std::move(groups)) {}
  async::task<core::Result<ExperiencePage>> on(FetchExperience request) {
    cursors.push_back(request.slots.front());
    ExperiencePage page;
    for (const std::uint32_t slot : request.slots) {
      if (page.groups.size() < 2) page.groups.push_back(groups_.at(slot));
    }
    co_return page;
  }
  std::vector<std::uint32_t> cursors;

 private:
  std::vector<experience::Group> groups_;
};

struct Seen {
  std::optional<core::Result<Trained>> trained;
  std::optional<core::Result<Published>> published;
  std::string state;
  wire::Amounts amounts;
};

async::task<void> learn_and_publish(RoleContext context,
                                    std::shared_ptr<PolicyRole> policy,
                                    Seen* seen) {
  TrainUpdate train{0, 5};
  seen->trained.emplace(co_await ask(context, "policy/0", train));
  const PublishWeights publish{1};
  seen->published.emplace(co_await ask(context, "policy/0", publish));
  seen->state = policy->state();
  seen->amounts = policy->amounts();
}

class Asker final : public cluster::Role {
 public:
  Asker(RoleContext context,
        std::shared_ptr<PolicyRole> policy,
        Seen* seen,
        std::promise<void>* over)
      : context_(std::move(context)), policy_(std::move(policy)), seen_(seen), over_(over) {}
  async::task<core::Result<wire::Frame>> handle(wire::Frame) override {
    co_return core::fail(core::ErrorCode::kUnsupported, "answers nothing");
  }
  async::task<core::Result<void>> run() override {
    co_await learn_and_publish(context_, std::move(policy_), seen_);
    over_->set_value();
    co_return core::Result<void>();
  }

 private:
  RoleContext context_;
  std::shared_ptr<PolicyRole> policy_;
  Seen* seen_;
  std::promise<void>* over_;
};

}  // namespace

TEST(PolicyRole, LearnsPagesInTicketOrderAndPublishesWhatItLearned) {
  core::SerialTeam team;
  auto same = trainer_of(team);
  const auto groups = learn::random_groups(*same->packed(), 0, 5, 3);
  const auto wanted = same->update(groups);
  ASSERT_TRUE(wanted);

  async::SteadyTimers timers;
  async::DeviceThread device("compute");
  async::IoThreads io(1);
  cluster::LoopbackNetwork network(timers);
  auto channel = std::make_shared<weights::LocalWeightChannel>();
  std::vector<std::unique_ptr<cluster::RoleHost>> hosts;
  const auto host = [&](const std::string& name, cluster::RoleHost::Factory factory) {
    auto endpoint = network.join({name, core::RunId{9}, 1}, io.make_strand());
    hosts.push_back(std::make_unique<cluster::RoleHost>(
        std::move(*endpoint), cluster::RoleHost::Hooks{}, &device, &team));
    io.run(start_host(hosts.back().get(), std::move(factory)));
  };
  auto pages = std::make_shared<Pages>(groups);
  host("data/0", factory_of<Pages>([pages](RoleContext) { return pages; }));
  std::shared_ptr<PolicyRole> policy;
  auto trainer = std::make_shared<std::unique_ptr<learn::PolicyTrainer>>(trainer_of(team));
  host("policy/0", factory_of<PolicyRole>([&policy, channel, trainer](RoleContext context) {
         return policy = std::make_shared<PolicyRole>(std::move(context), std::move(*trainer),
                                                      channel, "data/0", "");
       }));
  Seen seen;
  std::promise<void> over;
  host("controller/0",
       [&](const cluster::RoleServices& services) -> core::Result<std::unique_ptr<cluster::Role>> {
         return std::unique_ptr<cluster::Role>(
             std::make_unique<Asker>(context_of(services), policy, &seen, &over));
       });
  EXPECT_EQ(over.get_future().wait_for(std::chrono::minutes(2)), std::future_status::ready);
  const auto account = hosts.at(1)->activity().report();
  policy.reset();
  for (auto place = hosts.rbegin(); place != hosts.rend(); ++place)
    io.run((*place)->stop());
  device.close();
  io.join();

  ASSERT_TRUE(seen.trained && seen.trained->has_value());
  EXPECT_EQ(seen.trained->value().version, wanted->version);
  EXPECT_EQ(seen.trained->value().metrics, wanted->metrics) << "the bits of the trainer alone";
  EXPECT_EQ(pages->cursors, (std::vector<std::uint32_t>{0, 2, 4}));
  ASSERT_TRUE(seen.published && seen.published->has_value());
  EXPECT_EQ(seen.published->value().version, wanted->version);
  auto fetched = channel->fetch(wanted->version, {}, std::chrono::seconds(1));
  ASSERT_TRUE(fetched);
  EXPECT_EQ((*fetched)->version(), wanted->version);
  EXPECT_EQ(seen.state, "waiting for groups");
  EXPECT_EQ(seen.amounts.at(0).second, static_cast<double>(wanted->version));
  EXPECT_GT(account.busy.count(), 0);
  EXPECT_TRUE(account.idle.contains("waiting for groups"));
}

}  // namespace troupe::actors::policy
