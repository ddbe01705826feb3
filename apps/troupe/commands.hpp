// The subcommands of `troupe`. A command gets the words after its name and returns when it is done;
// an error ends the process with core::exit_status of its code. Commands run on the main thread and
// own everything they build.
#pragma once

#include "apps/cli/words.hpp"
#include "runtime/core/result.hpp"

#include <string_view>
#include <vector>

namespace troupe::app {

using Command = Result<void>(cli::Words words);

Command run_attach, run_bench, run_ca, run_chat, run_completion, run_config, run_data, run_detach;
Command run_doctor, run_eval, run_generate, run_get, run_init, run_log, run_merge_lora, run_model;
Command run_node, run_pipeline;
Command run_plan, run_push, run_report, run_reweight, run_score, run_serve, run_serve_reward,
    run_status;
Command run_trace, run_train, run_version;
// Commands `attach environment`, `detach environment`, `node drain`; `words` lacks their names.
Command run_attach_environment, run_detach_environment, run_drain;

// `config from-PEER`: a configuration from that of another trainer (runtime/config/peer_file.hpp).
Result<void> run_config_from(std::string_view peer, cli::Words words);

// What may stand behind `troupe`.
std::vector<std::string_view> command_names();

// Runs the command `words[0]` with the other words; prints help for no word or --help. Error
// kConfig: there is no such command.
Command run_command;

}  // namespace troupe::app
