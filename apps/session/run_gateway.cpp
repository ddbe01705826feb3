#include "apps/session/run_gateway.hpp"

#include "apps/session/node/join_flags.hpp"
#include "runtime/net/gateway_auth.hpp"

namespace troupe::session {
namespace {

namespace fs = std::filesystem;

Result<std::string> token_of(const fs::path& file) {
  std::error_code error;
  if (fs::exists(file, error)) return net::read_token_file(file);
  return net::create_token_file(file);
}

// The port of an earlier head that did not end in order; 0 when there is none.
std::uint16_t last_port(const fs::path& run_folder) {
  JoinFlags flags;
  flags.join = run_folder.string();
  const auto target = find_company(flags);
  return target ? target->port : std::uint16_t{0};
}

}  // namespace

Result<std::unique_ptr<net::Gateway>> open_gateway(const config::TrainConfig& config,
                                                   const fs::path& run_folder,
                                                   const std::string& socket,
                                                   actors::company::Admission& admission,
                                                   std::function<void(const std::string&)> note) {
  TROUPE_TRY_ASSIGN(address, parse_address(config.cluster.listen, "--cluster.listen"));
  net::GatewayAuth auth;
  std::string token_file;
  if (!config.cluster.ca.empty()) {
    auth.take(config.cluster);
  } else {
    token_file = config.cluster.token_file.empty() ? (run_folder / "join_token").string()
                                                   : config.cluster.token_file;
    TROUPE_TRY_SET(auth.token, token_of(token_file));
  }
  net::Gateway::Hooks hooks;
  hooks.refused = [note](const std::string& what) { note("refused at the gateway: " + what); };
  hooks.certificates = note;
  hooks.pass = [&admission](const std::string& service, const std::string&) {
    return service == "company" ? admission.issue_pass() : std::string();
  };
  // Nodes of other hosts look for the next head where the last one was.
  const std::uint16_t last = address.second == 0 ? last_port(run_folder) : std::uint16_t{0};
  auto gateway = net::Gateway::open(address.first, last == 0 ? address.second : last, auth,
                                    {{"company", socket}}, hooks);
  if (!gateway && last != 0) {
    gateway = net::Gateway::open(address.first, 0, std::move(auth), {{"company", socket}},
                                 std::move(hooks));
  }
  if (!gateway)
    return core::fail(gateway.error().within("--cluster.listen " + config.cluster.listen));
  TROUPE_TRY(write_company_file(
      run_folder.string(), {address.first, (*gateway)->port(), token_file, admission.run().value}));
  return gateway;
}

std::string address_of(const net::Gateway& gateway, const config::TrainConfig& config) {
  const auto address = parse_address(config.cluster.listen, "--cluster.listen");
  return address.value().first + ":" + std::to_string(gateway.port());
}

void close_gateway(net::Gateway& gateway, const fs::path& run_folder) {
  std::error_code error;
  if (!run_folder.empty()) fs::remove(run_folder / "company.json", error);
  gateway.stop();
}

}  // namespace troupe::session
