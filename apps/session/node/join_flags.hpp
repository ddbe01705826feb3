// The flags with which a command finds a running company and enters through its gateway: `--join
// HOST:PORT` with a token file or certificates, or on the same machine `--join RUN_FOLDER`, whose
// company.json names address and token file. Used on the main thread.
#pragma once

#include "apps/cli/flags.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/net/tunnel.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace troupe::session {

struct JoinFlags {
  std::string join, token_file, ca, certificate, key;

  std::vector<cli::Flag> flags();
};

// The gateway's address, and the credentials for it.
struct JoinTarget {
  std::string host;
  std::uint16_t port = 0;
  net::GatewayAuth auth;
  std::uint64_t run_id = 0;  // of the run whose folder was given; 0: whichever is at the address
  std::string run;           // that folder

  std::string name() const { return host + ":" + std::to_string(port); }
};

// Errors kConfig: no address, a malformed one, no such run, no readable token, bad certificates.
core::Result<JoinTarget> find_company(const JoinFlags& flags);

// Opens a tunnel through the gateway to a service: "company" (the tunnel then has a pass, which
// admits one node) or "weights". `log`: of the tunnel. Errors name the target.
core::Result<std::unique_ptr<net::Tunnel>> enter(async::IoThreads& io,
                                                 const JoinTarget& target,
                                                 const std::string& service,
                                                 std::function<void(const std::string&)> log = {});

// What RUN/company.json says to commands on the same machine.
struct CompanyFile {
  std::string host;
  std::uint16_t port = 0;
  std::string token_file;
  std::uint64_t run_id = 0;
};
core::Result<void> write_company_file(const std::string& run_folder, const CompanyFile& company);

// "host:1234" or "[::1]:1234". Error kConfig naming the flag.
core::Result<std::pair<std::string, std::uint16_t>> parse_address(const std::string& text,
                                                                  const std::string& flag);

}  // namespace troupe::session
