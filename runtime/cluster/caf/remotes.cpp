#include "runtime/cluster/caf/remotes.hpp"

#include "runtime/wire/header.hpp"

#include <utility>

namespace troupe::cluster::exchange {

void Remote::end_dials(const core::Error& error) {
  for (const auto& open : std::exchange(dials, {}))
    open.welcome->set_value(core::fail(error));
}

Remote* Remotes::find(const caf::node_id& process) {
  const auto found = remotes_.find(process);
  return found != remotes_.end() ? &found->second : nullptr;
}

Remote& Remotes::of(const caf::actor& introducer) {
  Remote& remote = remotes_[introducer.node()];
  if (!remote.introducer) watch(remote, introducer);
  return remote;
}

void Remotes::watch(Remote& remote, const caf::actor& introducer) {
  remote.introducer = introducer;
  self_.monitor(introducer);
}

std::optional<Remote> Remotes::forget(const caf::node_id& process) {
  auto taken = remotes_.extract(process);
  if (taken.empty()) return std::nullopt;
  return std::move(taken.mapped());
}

void Remotes::close() {
  for (auto& [node, remote] : std::exchange(remotes_, {}))
    remote.end_dials({core::ErrorCode::kClosed, "this process has left the network of roles"});
}

void Remotes::introduce(const Remote& remote, const Binding& role) {
  const auto frame = wire::hello_frame(role.hello);
  core_.count_out(frame);
  self_.send(remote.introducer, Parcel(frame), role.handle);
}

void Remotes::let_in(Remote& remote) {
  if (std::exchange(remote.in, true)) return;
  for (const auto& role : core_.directory.let_in(remote.introducer))
    introduce(remote, role);
}

void Remotes::recommend(const Binding& role, const Binding& to) {
  Remote* const remote = find(to.handle.node());
  if (role.local || remote == nullptr || role.handle.node() == to.handle.node()) return;
  remote->told.insert(role.hello.name);
  introduce(*remote, role);
}

void Remotes::withdraw(const wire::Hello& role, const core::Error& cause) {
  for (auto& [node, remote] : remotes_)
    if (remote.told.erase(role.name) > 0) tell(remote.introducer, role, core::fail(cause));
}

void Remotes::tell(const caf::actor& introducer,
                   const wire::Hello& hello,
                   const core::Result<void>& word) {
  wire::Header header;
  header.run = hello.run;
  header.epoch = hello.epoch;
  header.sender = hello.name;
  header.reply = true;
  const auto frame = word ? wire::ack_frame(header) : wire::failure_frame(header, word.error());
  core_.count_out(frame);
  self_.send(introducer, Parcel(frame));
}

}  // namespace troupe::cluster::exchange
