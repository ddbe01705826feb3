// Token, address, port.
#include "apps/session/gateway.hpp"

#include "apps/session/node/join_flags.hpp"
#include "runtime/net/token_file.hpp"

namespace troupe::app {
namespace {

namespace fs = std::filesystem;
using core::Result;

Result<std::string> token_of(const fs::path& file) {
  std::error_code error;
  if (fs::exists(file, error)) return net::read_token_file(file);
  return net::create_token_file(file);
}

}  // namespace

Gateway::Gateway(std::string host, fs::path company_file, std::unique_ptr<net::Door> door)
    : host_(std::move(host)), company_file_(std::move(company_file)), door_(std::move(door)) {}

Gateway::~Gateway() {
  stop();
}

Result<std::unique_ptr<Gateway>> Gateway::open(const config::TrainConfig& config,
                                               const fs::path& run_folder,
                                               async::IoThreads& io,
                                               const std::string& socket,
                                               actors::Admission& admission,
                                               std::function<void(const std::string&)> note) {
  TROUPE_TRY_ASSIGN(address, parse_address(config.cluster.listen, "--cluster.listen"));
  net::DoorAuth auth;
  std::string token_file;
  if (!config.cluster.ca.empty()) {
    auth.ca = config.cluster.ca;
    auth.certificate = config.cluster.certificate;
    auth.key = config.cluster.key;
  } else {
    token_file = config.cluster.token_file.empty() ? (run_folder / "join_token").string()
                                                   : config.cluster.token_file;
    TROUPE_TRY_ASSIGN(token, token_of(token_file));
    auth.token = std::move(token);
  }
  net::Door::Hooks hooks;
  hooks.refused = [note](const std::string& what) { note("refused at the door: " + what); };
  hooks.pass = [&admission](const std::string& service, const std::string&) {
    return service == "company" ? admission.issue_pass() : std::string();
  };
  auto door = net::Door::open(io, address.first, address.second, std::move(auth),
                              {{"company", socket}}, std::move(hooks));
  if (!door) return core::fail(door.error().within("--cluster.listen " + config.cluster.listen));
  const std::string host = address.first;
  TROUPE_TRY(write_company_file(run_folder.string(), host, (*door)->port(), token_file));
  return std::unique_ptr<Gateway>(new Gateway(host, run_folder / "company.json", std::move(*door)));
}

void Gateway::set_weights_port(std::uint16_t port) {
  door_->set_service("weights", port);
}

void Gateway::stop() {
  std::error_code error;
  fs::remove(company_file_, error);
  door_->stop();
}

}  // namespace troupe::app
