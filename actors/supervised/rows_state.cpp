#include "actors/supervised/rows_state.hpp"

#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <nlohmann/json.hpp>

namespace troupe::actors::supervised {
namespace {

constexpr const char* kRowsFile = "rows_state.json";
constexpr const char* kPassedOver = "passed_over";

}  // namespace

core::Result<void> write_rows_state(const std::filesystem::path& folder,
                                    std::uint64_t passed_over) {
  if (passed_over == 0) return {};
  const nlohmann::json state = {{kPassedOver, passed_over}};
  return store::replace_file(folder / kRowsFile, state.dump() + "\n");
}

core::Result<std::uint64_t> read_rows_state(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kRowsFile;
  std::error_code error;
  if (!std::filesystem::exists(file, error) && !error) return std::uint64_t{0};
  TROUPE_TRY_ASSIGN(text, store::read_all(file));
  const auto state = nlohmann::json::parse(text, nullptr, false);
  if (!state.is_object() || !state.contains(kPassedOver) ||
      !state[kPassedOver].is_number_unsigned()) {
    return core::fail(core::ErrorCode::kData,
                      file.string() + " does not say how many rows were passed over");
  }
  return state[kPassedOver].get<std::uint64_t>();
}

}  // namespace troupe::actors::supervised
