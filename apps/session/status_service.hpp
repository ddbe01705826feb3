// The status service of a run. It answers `troupe status`, /status and /metrics from the figures
// that come with the nodes' signs of life, so a frozen node delays nothing. Every kStatusEvery it
// also asks all roles, at once, for the spans of their time (of the head's own roles: for all
// figures); it writes the trace if configured, and when nothing progresses for kNoProgress it notes
// which role waits for which. Role "status/0", on its own strand; owned by the control plane.
#pragma once

#include "actors/company/company.hpp"
#include "actors/protocol/ask.hpp"
#include "apps/session/asked_roles.hpp"
#include "apps/session/status_text.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/async/run_on.hpp"
#include "runtime/cluster/caf/exchange.hpp"
#include "runtime/cluster/role_host.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/net/http_server.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace troupe::session {

struct StatusParts {
  const config::TrainConfig* config = nullptr;
  std::uint64_t run_id = 0;
  std::uint64_t generation = 1;  // of the run
  std::filesystem::path run_folder;
  cluster::Exchange* exchange = nullptr;
  std::function<async::task<actors::company::CompanyView>()> view;
  std::function<void(const std::string&)> note;
};

class StatusService {
 public:
  // Everything in `parts` outlives it. Errors: kConfig (cluster.status_listen), kResources.
  static core::Result<std::unique_ptr<StatusService>> open(StatusParts parts,
                                                           async::IoThreads& io,
                                                           async::Timers& timers);
  ~StatusService();

  // A role came up or was lost: asks it for reports from now on, or no longer. Any thread.
  void role_up(const std::string& role) { asked_.up(role); }
  void role_lost(const std::string& role) { asked_.lost(role); }

  // The whole status as one JSON object (docs/protocol.md). May be awaited on any executor.
  async::task<core::Result<std::string>> json(actors::company::CompanyView view);

  // A session begins: `watched_s` counts from now.
  void session_begins();
  // Asks every role once more and writes the status to RUN/status.json. Call while the roles still
  // run; not on an io thread.
  core::Result<void> write_report(actors::company::CompanyView view);

  // Sends a request to the controller in the service's name. May be awaited on any executor.
  template <class Request>
  async::task<core::Result<typename Request::Reply>> ask_controller(Request request) {
    auto asked = actors::ask(context_, "controller/0", std::move(request));
    auto reply = co_await async::run_apart(context_.scope, std::move(asked));
    co_return reply;
  }

  // Port of /status, /metrics and /healthz; 0 when cluster.status_listen is empty.
  std::uint16_t http_port() const { return http_ ? http_->port() : 0; }

  // Stops asking and answering, and ends the trace. Idempotent; not on an io thread.
  void close();

 private:
  StatusService(StatusParts parts, async::IoThreads& io, async::Timers& timers);
  async::task<core::Result<void>> start();
  async::task<core::Result<void>> watch();
  async::task<std::string> controller_state();
  async::task<StatusFacts> facts_of(actors::company::CompanyView view);
  async::task<StatusFacts> newest_facts_of(actors::company::CompanyView view);
  // Runs a coroutine on the service's strand. May be awaited on any executor.
  async::task<StatusFacts> on_strand(async::task<StatusFacts> facts);
  async::task<net::HttpResponse> serve(net::HttpRequest request);
  core::Result<void> open_http();

  const StatusParts parts_;
  async::IoThreads& io_;
  async::Timers& timers_;
  const core::TimePoint opened_;
  actors::RoleContext context_;
  std::unique_ptr<cluster::RoleHost> host_;
  std::unique_ptr<net::HttpServer> http_;
  std::atomic<core::TimePoint> session_began_{};
  AskedRoles asked_;  // on the service's strand
  bool closed_ = false;
};

}  // namespace troupe::session
