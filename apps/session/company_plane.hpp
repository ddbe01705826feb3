// CompanyPlane, the control plane of a run over several processes. It lives in the head process and
// owns the network, the gateway for other hosts, the node processes of this host, the company role
// and the status service. Opened once, for all sessions of a run. Owned by the `train` command.
#pragma once

#include "actors/company/company.hpp"
#include "apps/session/control_plane.hpp"
#include "apps/session/core_plan.hpp"
#include "apps/session/node/local_nodes.hpp"
#include "apps/session/node/node_logs.hpp"
#include "apps/session/roles/contents.hpp"
#include "apps/session/run_gateway.hpp"
#include "apps/session/session_news.hpp"
#include "apps/session/status_service.hpp"
#include "runtime/async/device_thread.hpp"
#include "runtime/cluster/caf/exchange.hpp"
#include "runtime/config/train_config.hpp"

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace troupe::session {

struct CompanyPlaneOptions {
  config::TrainConfig config;
  std::uint64_t updates = 0;  // of the whole run
  std::uint64_t run_id = 0;
  std::uint64_t generation = 1;  // of the run: this head's
  std::filesystem::path run_folder;
  // False once another head has taken the run over. Any thread.
  std::function<bool()> ours = [] { return true; };
  CorePlan cores;
  // Returns the hashes of the run's files. May block: called on a thread of its own.
  std::function<core::Result<Hashes>()> contents;
  // Shows a line to the user. Called on any thread until the plane is destroyed.
  std::function<void(const std::string&)> note;
};

class CompanyPlane final : public ControlPlane, public actors::company::CompanyPort {
 public:
  // Opens the ports and starts the local processes. Errors: kConfig (addresses, token), kResources
  // (ports).
  static core::Result<std::unique_ptr<CompanyPlane>> open(CompanyPlaneOptions options);
  ~CompanyPlane() override;  // asks the nodes to end and waits for those of this host

  async::IoThreads& io() override { return role_io_; }
  core::Result<std::shared_ptr<cluster::Endpoint>> join(const std::string& name) override;
  core::Result<void> start_roles() override;
  std::string arithmetic() const override { return arithmetic_; }
  void prepare(actors::controller::Controller& controller) override;
  void attach(RunSession& session) override;
  std::optional<core::Error> shortage() override;
  void write_report() override;
  void stop_roles(bool over) override;

  // actors::CompanyPort, on the company's strand.
  void role_up(const std::string& role) override;
  void role_lost(const std::string& role, const core::Error& cause) override;
  void note(const std::string& text) override { options_.note(text); }
  void hopeless(const core::Error& error) override { news_.give_up(error); }
  void fence(const std::string& name, std::uint64_t epoch, const core::Error& cause) override {
    exchange_->forget(name, cause, epoch);
  }
  std::optional<core::TimePoint> heard(const std::string& node) override {
    return gateway_->heard(admission_.pass_of(node));
  }
  async::task<Settings> contents() override;
  async::task<core::Result<std::string>> status() override {
    return status_->json(company_->view());
  }
  async::task<core::Result<actors::RewardsChanged>> attach(actors::AttachReward it) override {
    return status_->ask_controller(std::move(it));
  }
  async::task<core::Result<actors::RewardsChanged>> reweight(actors::ReweightReward it) override {
    return status_->ask_controller(std::move(it));
  }
  async::task<core::Result<actors::RewardsChanged>> detach(actors::DetachReward it) override {
    return status_->ask_controller(std::move(it));
  }
  async::task<core::Result<actors::Ack>> drain(actors::DrainGenerator it) override {
    return status_->ask_controller(std::move(it));
  }
  void log(actors::PutLog lines, std::uint32_t pid) override {
    logs_->put(std::move(lines), pid, timers_.now());
  }
  std::vector<std::string> last_lines(const std::string& node) override {
    return logs_->last_lines(node);
  }
  void rank_listens(const actors::company::PlacedRole& rank, const std::string& socket) override;
  void regroup(const std::string& why) override { news_.regroup(why); }

  // Where other commands reach this company: "127.0.0.1:4711".
  std::string address() const { return address_of(*gateway_, options_.config); }
  // "; http://127.0.0.1:4712/metrics"; empty without a status port.
  std::string status_text() const;

 private:
  explicit CompanyPlane(CompanyPlaneOptions options);
  core::Result<void> start();
  core::Result<void> open_exchange();
  async::task<core::Result<void>> start_company();

  // On the company's strand.
  async::task<core::Result<void>> await_roles();
  void attach_here(RunSession& session);
  async::task<void> end_session();
  async::task<std::optional<core::Error>> shortage_here();

  const CompanyPlaneOptions options_;
  std::atomic<std::uint64_t> sessions_{0};  // begun so far
  async::SteadyTimers timers_;
  async::IoThreads own_io_;                  // of the company, so no role delays a heartbeat
  async::IoThreads role_io_;                 // controller, data, status
  async::DeviceThread hashing_{"contents"};  // waits for the run's hashes
  actors::company::Admission admission_;
  std::unique_ptr<cluster::Exchange> exchange_;
  std::unique_ptr<LocalNodes> nodes_;
  std::unique_ptr<NodeLogs> logs_;  // used on the company's strand
  std::unique_ptr<net::Gateway> gateway_;
  std::map<std::string, std::string> ways_;  // services of this host's ranks there, by role
  std::unique_ptr<StatusService> status_;
  std::shared_ptr<actors::company::Company> company_;
  async::Executor strand_;  // of the company
  std::unique_ptr<cluster::RoleHost> company_host_;
  bool over_ = false;       // the run is finished
  std::string arithmetic_;  // of the policy of the last session
  SessionNews news_;
};

}  // namespace troupe::session
