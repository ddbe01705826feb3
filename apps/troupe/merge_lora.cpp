// `troupe merge-lora`: merges a LoRA adapter (a PEFT folder) into its base model. It calls the same
// function as a run with adapters, so the merged f32 weights have the same bits.
#include "apps/cli/dtype_flag.hpp"
#include "apps/cli/flags.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/core/team.hpp"
#include "runtime/model/params.hpp"
#include "runtime/model/peft_folder.hpp"
#include "runtime/model/spec.hpp"

#include <cstdio>
#include <string>

namespace troupe::app {

Result<void> run_merge_lora(cli::Words words) {
  std::string base, adapter, output, dtype_name = "f32";
  bool any_base = false;
  TROUPE_TRY_ASSIGN(
      outcome, cli::parse_flags(
                   "troupe merge-lora: put a LoRA adapter (a PEFT folder) into its base model",
                   {{"--model", &base, "the base model: a folder, or OWNER/NAME of the hub", true},
                    {"--adapter", &adapter, "folder with adapter_config.json", true},
                    {"--out,--output", &output, "folder to write the merged model to", true},
                    {"--dtype", &dtype_name, "type of the weights written: f32 or bf16"},
                    {"--any-base", &any_base, "take weights that the adapter was not trained on"}},
                   words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(dtype, cli::storage_dtype(dtype_name));
  TROUPE_TRY_ASSIGN(folder, model::resolve_model(base));
  TROUPE_TRY_ASSIGN(config, model::read_adapter_config(adapter));
  TROUPE_TRY_ASSIGN(params, model::load_model(folder, config.head));
  TROUPE_TRY_ASSIGN(lora, model::load_adapter(adapter, *params, any_base));
  core::SerialTeam team;
  lora->merge(team, *params);
  TROUPE_TRY(model::save_model(*params, output, dtype, folder));
  std::printf("%s: %s of %s merged\n", output.c_str(), adapter.c_str(), base.c_str());
  return {};
}

}  // namespace troupe::app
