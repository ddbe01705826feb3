// Makes generators, with what all of a process share: the tokenizer, the guides, the faults of a
// test. A generator reads no weights from files; it gets them from the policy. Owned by the role
// loader, used on its compute thread.
#pragma once

#include "actors/generator/tokenizer_text.hpp"
#include "apps/session/roles/fault_plan.hpp"
#include "apps/session/roles/one_process.hpp"
#include "apps/session/roles/role_threads.hpp"
#include "runtime/cluster/role_host.hpp"
#include "runtime/guide/guide_maker.hpp"
#include "runtime/model/params.hpp"
#include "runtime/weights/relay.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

namespace troupe::session {

class GeneratorRoles {
 public:
  // Turns a subscriber into one that reaches a trainer on another host; null: no change.
  using Reach = std::function<std::shared_ptr<weights::WeightSubscriber>(
      std::shared_ptr<weights::WeightSubscriber>)>;
  // `shared` and `threads` outlive this object. `relays`: how the generators pass weights on to
  // other hosts, and get them from there.
  GeneratorRoles(OneProcess& shared,
                 RoleThreads& threads,
                 Reach reach,
                 weights::RelayOptions relays)
      : shared_(shared), threads_(threads), reach_(std::move(reach)), relays_(std::move(relays)) {}

  core::Result<cluster::RoleRecipe> generator(const RoleOrder& order);

 private:
  core::Result<void> load_text(const std::filesystem::path& folder, const model::ModelSpec& spec);

  OneProcess& shared_;
  RoleThreads& threads_;
  const Reach reach_;
  const weights::RelayOptions relays_;
  std::unique_ptr<FaultPlan> faults_;  // null: none
  std::shared_ptr<actors::generator::TokenizerText> text_;
  std::shared_ptr<guide::GuideMaker> guides_;
  std::vector<std::int32_t> eos_;
};

}  // namespace troupe::session
