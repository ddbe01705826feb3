// Runs episodes in sessions: those of a program of ours, which makes its own calls of the model,
// and those that programs from outside open. The server of sessions begins with the first. Owned by
// the environment role, used on its strand.
#pragma once

#include "actors/environment/episode_run.hpp"
#include "actors/environment/session_server.hpp"
#include "actors/protocol/role_shell.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace troupe::actors::environment {

struct EnvironmentParts;

class SessionEpisodes {
 public:
  // Both outlive the object.
  SessionEpisodes(const RoleContext& context, const EnvironmentParts& parts);
  ~SessionEpisodes();

  // After an error `loss` says how the program was lost.
  async::task<core::Result<EpisodeEnd>> run(EpisodeOrder order, Loss* loss);

  std::uint64_t unrewarded() const noexcept { return unrewarded_; }  // episodes

 private:
  core::Result<void> serve();
  async::task<core::Result<void>> serve_when_free();
  async::task<core::Result<EpisodeEnd>> run_program(EpisodeOrder order, Loss* loss);
  async::task<core::Result<EpisodeEnd>> run_session(EpisodeOrder order);
  async::task<void> see_end(std::shared_ptr<EpisodeSessions::Visit> visit);
  core::Result<EpisodeEnd> end_of(const sessions::Session& session, const std::string& who);

  const RoleContext& context_;
  const EnvironmentParts& parts_;
  std::shared_ptr<EpisodeSessions> sessions_;
  std::unique_ptr<SessionServer> server_;     // made for the first session
  bool awaits_port_ = false;                  // the user was told
  std::shared_ptr<async::Notifier> visited_;  // a session gave a result
  std::uint64_t unrewarded_ = 0;
};

}  // namespace troupe::actors::environment
