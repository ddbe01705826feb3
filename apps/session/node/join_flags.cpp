#include "apps/session/node/join_flags.hpp"

#include "runtime/core/texts.hpp"
#include "runtime/net/gateway_auth.hpp"
#include "runtime/net/limits.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace troupe::session {
namespace {

namespace fs = std::filesystem;

Result<JoinTarget> from_run_folder(const fs::path& folder) {
  const fs::path file = folder / "company.json";
  std::ifstream in(file);
  const auto object = nlohmann::json::parse(in, nullptr, false);
  if (!object.is_object() || !object.contains("port")) {
    return fail(ErrorCode::kConfig, "--join: " + folder.string() +
                                        " is not the folder of a live run (no company.json)");
  }
  JoinTarget target;
  target.host = object.value("host", "127.0.0.1");
  target.port = object.value("port", std::uint16_t{0});
  target.run_id = object.value("run_id", std::uint64_t{0});
  target.run = folder.string();
  const std::string token = object.value("token_file", "");
  if (!token.empty()) {
    TROUPE_TRY_SET(target.auth.token, net::read_token_file(token));
  }
  return target;
}

Result<void> add_auth(const JoinFlags& flags, JoinTarget& target) {
  if (!flags.ca.empty()) {
    target.auth.token.clear();
    target.auth.ca = flags.ca;
    target.auth.certificate = flags.certificate;
    target.auth.key = flags.key;
    return net::check_auth(target.auth);
  }
  std::string file = flags.token_file;
  if (file.empty()) {
    if (const char* named = std::getenv("TROUPE_JOIN_TOKEN_FILE")) file = named;
  }
  if (!file.empty()) {
    TROUPE_TRY_SET(target.auth.token, net::read_token_file(file));
  }
  if (target.auth.token.empty()) {
    return fail(ErrorCode::kConfig,
                "--join needs a proof: copy the run's join_token here (mode 0600) and give "
                "--token-file, or give --ca, --certificate and --key");
  }
  return {};
}

}  // namespace

std::vector<cli::Flag> JoinFlags::flags() {
  return {{"--join", &join, "HOST:PORT of the company, or its run folder on this machine", true},
          {"--token-file", &token_file, "the run's join token (or TROUPE_JOIN_TOKEN_FILE)"},
          {"--ca", &ca, "certificate of the run's CA, with --certificate and --key"},
          {"--certificate", &certificate, "certificate of this host"},
          {"--key", &key, "private key of this host"}};
}

Result<std::pair<std::string, std::uint16_t>> parse_address(const std::string& text,
                                                            const std::string& flag) {
  const auto colon = text.rfind(':');
  if (colon != text.npos && colon > 0) {
    if (const auto port = core::number_of<std::uint16_t>(text.substr(colon + 1))) {
      std::string host = text.substr(0, colon);
      if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
        host = host.substr(1, host.size() - 2);
      }
      return std::pair(host, *port);
    }
  }
  return fail(ErrorCode::kConfig, flag + ": expected HOST:PORT, got '" + text + "'");
}

Result<JoinTarget> find_company(const JoinFlags& flags) {
  std::error_code error;
  JoinTarget target;
  if (fs::is_directory(flags.join, error)) {
    TROUPE_TRY_SET(target, from_run_folder(flags.join));
  } else {
    auto parsed = parse_address(flags.join, "--join");
    if (!parsed) {
      return fail(ErrorCode::kConfig,
                  "--join: '" + flags.join + "' is neither HOST:PORT nor the folder of a run");
    }
    const auto address = std::move(parsed).value();
    target.host = address.first;
    target.port = address.second;
  }
  TROUPE_TRY(add_auth(flags, target));
  return target;
}

Result<std::unique_ptr<net::Tunnel>> enter(async::IoThreads& io,
                                           const JoinTarget& target,
                                           const std::string& service,
                                           std::function<void(const std::string&)> log) {
  auto tunnel = net::Tunnel::open(io, target.host, target.port, target.auth, service,
                                  net::limits::kTunnelConnect, std::move(log));
  if (!tunnel) return fail(tunnel.error().within("--join " + target.name()));
  return tunnel;
}

Result<void> write_company_file(const std::string& run_folder, const CompanyFile& company) {
  const nlohmann::json object = {{"host", company.host},
                                 {"port", company.port},
                                 {"token_file", company.token_file},
                                 {"run_id", company.run_id}};
  return store::replace_file(fs::path(run_folder) / "company.json", object.dump(1) + "\n");
}

}  // namespace troupe::session
