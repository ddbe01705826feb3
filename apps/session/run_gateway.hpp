// The one port of a run that other hosts may reach: nodes join and rewards attach here.
#pragma once

#include "actors/company/admission.hpp"
#include "runtime/config/train_config.hpp"
#include "runtime/net/gateway.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace troupe::app {

// Opens the port cluster.listen. Makes the join token where there is none, and leaves
// RUN/company.json for commands on this machine. `socket`: of the transport. `admission` outlives
// the gateway. Errors: kConfig (address, token file, certificates), kResources (the port is taken),
// naming the key.
core::Result<std::unique_ptr<net::Gateway>> open_gateway(
    const config::TrainConfig& config,
    const std::filesystem::path& run_folder,
    async::IoThreads& io,
    const std::string& socket,
    actors::Admission& admission,
    std::function<void(const std::string&)> note);

// Where others reach it: "127.0.0.1:4711".
std::string address_of(const net::Gateway& gateway, const config::TrainConfig& config);

// Closes the port and takes RUN/company.json away.
void close_gateway(net::Gateway& gateway, const std::filesystem::path& run_folder);

}  // namespace troupe::app
