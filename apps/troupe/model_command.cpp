// `troupe model random`: writes a model of a known shape with random weights and a tokenizer of
// bytes, for measurements and tests on machines that can fetch none.
#include "apps/cli/dtype_flag.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/random_model.hpp"
#include "apps/troupe/commands.hpp"

#include <cstdio>
#include <filesystem>
#include <string>

namespace troupe::app {
namespace {

constexpr float kDeviation = 0.02f;  // of the weights, as models begin

}  // namespace

Result<void> run_model(cli::Words words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    std::fputs("usage: troupe model random --shape NAME --out DIR [--layers N] [--seed N]\n",
               stdout);
    return {};
  }
  if (words[0] != "random") {
    return fail(ErrorCode::kConfig, "there is no 'troupe model " + words[0] + "'",
                "use troupe model random");
  }
  std::string shape, out, dtype = "bf16";
  std::int64_t layers = 0, seed = 1;
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags(
          "troupe model random: write a model of random weights, with a tokenizer of bytes",
          {{"--shape", &shape, cli::model_shape_names(), true},
           {"--out", &out, "folder to write; must not be there yet", true},
           {"--layers", &layers, "layers of the model; 0: as in the shape", false, 0, 1024},
           {"--seed", &seed, "seed of the weights", false, 0, 1e18},
           {"--dtype", &dtype, "type of the weights in the file: bf16 or f32"}},
          words.subspan(1)));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(storage, cli::storage_dtype(dtype));
  if (std::filesystem::exists(out))
    return fail(ErrorCode::kConfig, "--out " + out + " is there already");
  TROUPE_TRY_ASSIGN(spec, cli::spec_of_shape(shape, layers));
  TROUPE_TRY(
      cli::write_random_model(spec, static_cast<std::uint64_t>(seed), kDeviation, storage, out));
  std::printf("%s: %s with %ld layers, %.1f M random parameters\n", out.c_str(), shape.c_str(),
              spec.layers, static_cast<double>(spec.parameter_count()) / 1e6);
  return {};
}

}  // namespace troupe::app
