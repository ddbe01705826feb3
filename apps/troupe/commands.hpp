// The subcommands of `troupe`. A command gets the words after its name and returns when it is done;
// an error ends the process with core::exit_status of its code. Commands run on the main thread and
// own everything they build.
#pragma once

#include "apps/cli/words.hpp"
#include "runtime/core/result.hpp"

namespace troupe::app {

core::Result<void> run_attach(Words words);
core::Result<void> run_attach_environment(Words words);  // `attach environment`, without its words
core::Result<void> run_detach_environment(Words words);
core::Result<void> run_ca(Words words);
core::Result<void> run_chat(Words words);
core::Result<void> run_config(Words words);
core::Result<void> run_data(Words words);
core::Result<void> run_detach(Words words);
core::Result<void> run_doctor(Words words);
core::Result<void> run_eval(Words words);
core::Result<void> run_generate(Words words);
core::Result<void> run_log(Words words);
core::Result<void> run_merge_lora(Words words);
core::Result<void> run_model(Words words);
core::Result<void> run_node(Words words);
core::Result<void> run_drain(Words words);  // of `node`
core::Result<void> run_pipeline(Words words);
core::Result<void> run_plan(Words words);
core::Result<void> run_report(Words words);
core::Result<void> run_reweight(Words words);
core::Result<void> run_score(Words words);
core::Result<void> run_serve(Words words);
core::Result<void> run_serve_reward(Words words);
core::Result<void> run_status(Words words);
core::Result<void> run_trace(Words words);
core::Result<void> run_train(Words words);
core::Result<void> run_version(Words words);

// Runs the command `words[0]` with the other words; prints help for no word or --help. Error
// kConfig: there is no such command.
core::Result<void> run_command(Words words);

}  // namespace troupe::app
