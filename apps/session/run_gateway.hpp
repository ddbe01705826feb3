// Opens and closes a run's gateway, its one port for other hosts: nodes join and rewards attach
// here.
#pragma once

#include "actors/company/admission.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/net/gateway.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace troupe::session {

// Opens the port cluster.listen, and raises the process's bound of open files. Creates the join
// token if there is none, and writes RUN/company.json for commands on this machine. `socket`: the
// transport's Unix socket. `admission` outlives the gateway. `note` is called on the gateway's
// threads. Errors: kConfig (address, token file, certificates), kResources (the port is taken),
// naming the key.
core::Result<std::unique_ptr<net::Gateway>> open_gateway(
    const config::TrainConfig& config,
    const std::filesystem::path& run_folder,
    const std::string& socket,
    actors::company::Admission& admission,
    std::function<void(const std::string&)> note);

// The gateway's address for --join of other commands: "127.0.0.1:4711".
std::string address_of(const net::Gateway& gateway, const config::TrainConfig& config);

// Closes the port and removes RUN/company.json, unless `run_folder` is empty: another head has it.
void close_gateway(net::Gateway& gateway, const std::filesystem::path& run_folder);

}  // namespace troupe::session
