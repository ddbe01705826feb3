// Knows what goes on: asks every role for its account each kStatusEvery, and tells `troupe status`,
// /metrics and /healthz; writes the trace when asked to; says who waits for whom when nothing
// moves. The role "desk/0" of a run, on a strand of its own; owned by the head.
#pragma once

#include "actors/node/company_role.hpp"
#include "actors/protocol/ask.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/cluster/caf/exchange.hpp"
#include "runtime/config/train_config.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace troupe::app {

struct StatusParts {
  const config::TrainConfig* config = nullptr;
  std::uint64_t run_id = 0;
  std::filesystem::path run_folder;
  cluster::Exchange* exchange = nullptr;
  std::function<async::task<actors::CompanyView>()> view;
  std::function<void(const std::string&)> note;
};

class StatusDesk {
 public:
  // Everything in `parts` outlives it. Errors: kConfig (cluster.status_listen), kResources.
  static core::Result<std::unique_ptr<StatusDesk>> open(StatusParts parts,
                                                        async::IoThreads& io,
                                                        async::Timers& timers);
  ~StatusDesk();

  // Any thread.
  void role_up(const std::string& role);
  void role_lost(const std::string& role);

  // The whole of it as one JSON object; awaited on any executor.
  async::task<core::Result<std::string>> json(actors::CompanyView view);

  // A play begins: from here on it is counted how long generators and the policy are busy at once.
  void play_begins();
  // Asks everybody once more and leaves the whole of it in RUN/status.json. While the roles are
  // still there; not on an io thread.
  core::Result<void> write_report(actors::CompanyView view);

  // Sends a request to the controller in the name of the desk; awaited on any executor.
  template <class Request>
  async::task<core::Result<typename Request::Reply>> ask_controller(Request request) {
    using Reply = core::Result<typename Request::Reply>;
    auto reply = std::make_shared<std::optional<Reply>>();
    auto asked = forward<Request>(context(), std::move(request), reply);
    co_await async::run_on(context().scope->executor(), std::move(asked));
    co_return std::move(**reply);
  }

  // Port of /metrics and /healthz; 0 without.
  std::uint16_t http_port() const;

  // Stops asking; writes the rest of the trace. Idempotent; not on an io thread.
  void close();

 private:
  struct Impl;
  explicit StatusDesk(std::unique_ptr<Impl> impl);
  const actors::RoleContext& context() const;

  template <class Request>
  static async::task<void> forward(
      actors::RoleContext context,
      Request request,
      std::shared_ptr<std::optional<core::Result<typename Request::Reply>>> reply) {
    auto answered = co_await actors::ask(context, "controller/0", std::move(request));
    reply->emplace(std::move(answered));
  }

  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::app
