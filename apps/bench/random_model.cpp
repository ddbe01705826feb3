#include "apps/bench/random_model.hpp"

#include "apps/bench/byte_tokenizer.hpp"
#include "apps/cli/placement.hpp"
#include "runtime/model/randomise.hpp"
#include "runtime/store/atomic_folder.hpp"

namespace troupe::app {

core::Result<void> write_random_model(const model::ModelSpec& spec,
                                      std::uint64_t seed,
                                      float deviation,
                                      model::StorageDtype dtype,
                                      const std::filesystem::path& folder) {
  model::ParamStore params(spec);
  TROUPE_TRY_ASSIGN(team, make_team({}));
  team->run([&](core::Team member) { model::randomise(member, params, seed, deviation); });
  TROUPE_TRY(model::save_model(params, folder, dtype, {}));
  TROUPE_TRY(store::write_file(folder / "tokenizer.json", byte_tokenizer().dump()));
  return store::write_file(folder / "tokenizer_config.json", kByteTokenizerConfig);
}

}  // namespace troupe::app
