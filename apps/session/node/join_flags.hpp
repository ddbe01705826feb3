// How a command finds a company: `--join HOST:PORT` with a token file or certificates, through the
// company's gateway, or `--join RUN_FOLDER` on the same machine, which names both. Used on the main
// thread.
#pragma once

#include "apps/cli/flags.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/net/tunnel.hpp"

#include <memory>
#include <string>
#include <vector>

namespace troupe::app {

struct JoinFlags {
  std::string join, token_file, ca, certificate, key;

  std::vector<Flag> flags();
};

// Where the company is, and the proof that lets this process in.
struct JoinTarget {
  std::string host;
  std::uint16_t port = 0;
  net::GatewayAuth auth;

  std::string name() const { return host + ":" + std::to_string(port); }
};

// Errors kConfig: no address, a malformed one, no such run, no readable token.
core::Result<JoinTarget> find_company(const JoinFlags& flags);

// A way through the gateway to a service; its pass lets one node in. Errors say what was tried.
core::Result<std::unique_ptr<net::Tunnel>> enter(async::IoThreads& io,
                                                 const JoinTarget& target,
                                                 const std::string& service);

// RUN/company.json, which a run writes for commands of the same machine.
core::Result<void> write_company_file(const std::string& run_folder,
                                      const std::string& host,
                                      std::uint16_t port,
                                      const std::string& token_file);

// "host:1234" or "[::1]:1234". Error kConfig naming the flag.
core::Result<std::pair<std::string, std::uint16_t>> parse_address(const std::string& text,
                                                                  const std::string& flag);

}  // namespace troupe::app
