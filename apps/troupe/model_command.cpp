// `troupe model random`: writes a model of a known shape with random weights and a tokenizer of
// bytes, for measurements and tests on machines that can fetch none.
#include "apps/bench/model_shapes.hpp"
#include "apps/bench/random_model.hpp"
#include "apps/cli/dtype_flag.hpp"
#include "apps/cli/flags.hpp"
#include "apps/troupe/commands.hpp"

#include <cstdio>
#include <filesystem>
#include <string>

namespace troupe::app {
namespace {

using core::ErrorCode;

constexpr float kDeviation = 0.02f;  // of the weights, as models begin

}  // namespace

core::Result<void> run_model(Words words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    std::fputs("usage: troupe model random --shape NAME --out DIR [--layers N] [--seed N]\n",
               stdout);
    return {};
  }
  if (words[0] != "random") {
    return core::fail(ErrorCode::kConfig, "there is no 'troupe model " + words[0] + "'",
                      "use troupe model random");
  }
  std::string shape, out, dtype = "bf16";
  std::int64_t layers = 0, seed = 1;
  TROUPE_TRY_ASSIGN(
      outcome,
      parse_flags("troupe model random: write a model of random weights, with a tokenizer of bytes",
                  {{"--shape", &shape, model_shape_names(), true},
                   {"--out", &out, "folder to write; must not be there yet", true},
                   {"--layers", &layers, "0: those of the shape", false, 0, 1024},
                   {"--seed", &seed, "of the weights", false, 0, 1e18},
                   {"--dtype", &dtype, "of the file: bf16 or f32"}},
                  words.subspan(1)));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(storage, storage_dtype(dtype));
  if (std::filesystem::exists(out))
    return core::fail(ErrorCode::kConfig, "--out " + out + " is there already");
  TROUPE_TRY_ASSIGN(spec, spec_of_shape(shape, layers));
  TROUPE_TRY(write_random_model(spec, static_cast<std::uint64_t>(seed), kDeviation, storage, out));
  std::printf("%s: %s with %lld layers, %.1f M random parameters\n", out.c_str(), shape.c_str(),
              static_cast<long long>(spec.layers),
              static_cast<double>(spec.parameter_count()) / 1e6);
  return {};
}

}  // namespace troupe::app
