#include "runtime/store/generation.hpp"

#include "runtime/core/rng.hpp"
#include "runtime/core/secret.hpp"
#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_folder.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <string>

namespace troupe::store {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Names this process in the file; process ids come again, and hosts share folders.
const std::string& own_mark() {
  static const std::string mark = core::random_hex(16);
  return mark;
}

std::uint64_t fresh_run_id() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return core::derive_seed(static_cast<std::uint64_t>(now), 1);
}

fs::path file_in(const fs::path& folder) {
  return folder / "generation.json";
}

// An empty object when there is no file, or a damaged one.
json read_object(const fs::path& file) {
  const auto text = read_all(file);
  if (!text) return json::object();
  json object = json::parse(*text, nullptr, false);
  return object.is_object() ? object : json::object();
}

std::uint64_t number_in(const json& object, const char* key) {
  return object.contains(key) && object[key].is_number_unsigned() ? object[key].get<std::uint64_t>()
                                                                  : 0;
}

std::string mark_in(const json& object) {
  return object.contains("head") && object["head"].is_string() ? object["head"].get<std::string>()
                                                               : "";
}

}  // namespace

core::Result<Generation> Generation::take(const fs::path& folder) {
  Generation mine;
  mine.file_ = file_in(folder);
  const json before = read_object(mine.file_);
  mine.run_id_ = number_in(before, "run_id");
  mine.number_ = number_in(before, "generation");
  if (mine.run_id_ != 0 && mark_in(before) == own_mark()) return mine;
  if (mine.run_id_ == 0) mine.run_id_ = fresh_run_id();
  ++mine.number_;
  const json after = {{"run_id", mine.run_id_}, {"generation", mine.number_}, {"head", own_mark()}};
  TROUPE_TRY(replace_file(mine.file_, after.dump() + "\n"));
  return mine;
}

core::Result<void> Generation::check() const {
  const json now = read_object(file_);
  const std::string mark = mark_in(now);
  if (mark.empty() || mark == own_mark()) return {};
  return core::fail(core::ErrorCode::kClosed,
                    "another process has taken this run over (generation " +
                        std::to_string(number_in(now, "generation")) + ", here " +
                        std::to_string(number_) + ")",
                    "this one ends and writes nothing more");
}

core::Result<void> forget_run(const fs::path& folder) {
  json object = read_object(file_in(folder));
  if (number_in(object, "run_id") == 0) return {};
  object["run_id"] = fresh_run_id();
  return replace_file(file_in(folder), object.dump() + "\n");
}

}  // namespace troupe::store
