// `troupe model random`: writes a model of a known shape with random weights and a tokenizer of
// bytes, for measurements and tests on machines that can fetch none.
#include "apps/bench/byte_tokenizer.hpp"
#include "apps/bench/model_shapes.hpp"
#include "apps/cli/flags.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/model/params.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <cstdio>
#include <filesystem>
#include <string>

namespace troupe::app {
namespace {

using core::ErrorCode;

constexpr float kDeviation = 0.02f;  // of the weights, as models begin

core::Result<void> write_random(const model::ModelSpec& spec,
                                std::uint64_t seed,
                                model::StorageDtype dtype,
                                const std::filesystem::path& folder) {
  model::ParamStore params(spec);
  model::randomise(params, seed, kDeviation);
  TROUPE_TRY(model::save_model(params, folder, dtype, {}));
  TROUPE_TRY(store::write_file(folder / "tokenizer.json", byte_tokenizer().dump()));
  return store::write_file(folder / "tokenizer_config.json", kByteTokenizerConfig);
}

}  // namespace

core::Result<void> run_model(Words words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    std::fputs("usage: troupe model random --shape NAME --out DIR [--layers N] [--seed N]\n",
               stdout);
    return {};
  }
  if (words[0] != "random") {
    return core::fail(ErrorCode::kConfig,
                      "there is no 'troupe model " + words[0] + "'; use troupe model random");
  }
  std::string shape, out, dtype = "bf16";
  std::int64_t layers = 0, seed = 1;
  TROUPE_TRY_ASSIGN(
      outcome,
      parse_flags("troupe model random: write a model of random weights, with a tokenizer of bytes",
                  {{"--shape", &shape, kModelShapes, true},
                   {"--out", &out, "folder to write; must not be there yet", true},
                   {"--layers", &layers, "0: those of the shape", false, 0, 1024},
                   {"--seed", &seed, "of the weights", false, 0, 1e18},
                   {"--dtype", &dtype, "of the file: bf16 or f32"}},
                  words.subspan(1)));
  if (outcome == FlagsOutcome::kHelpShown) return {};
  if (dtype != "bf16" && dtype != "f32")
    return core::fail(ErrorCode::kConfig, "--dtype " + dtype + " is not offered; use bf16 or f32");
  if (std::filesystem::exists(out))
    return core::fail(ErrorCode::kConfig, "--out " + out + " is there already");
  TROUPE_TRY_ASSIGN(spec, spec_of_shape(shape, layers));
  TROUPE_TRY(write_random(spec, static_cast<std::uint64_t>(seed),
                          dtype == "bf16" ? model::StorageDtype::kBf16 : model::StorageDtype::kF32,
                          out));
  std::printf("%s: %s with %lld layers, %.1f M random parameters\n", out.c_str(), shape.c_str(),
              static_cast<long long>(spec.layers),
              static_cast<double>(spec.parameter_count()) / 1e6);
  return {};
}

}  // namespace troupe::app
