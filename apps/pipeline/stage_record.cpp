#include "apps/pipeline/stage_record.hpp"

#include "apps/pipeline/limits.hpp"
#include "runtime/core/split.hpp"
#include "runtime/parse/bounded_json.hpp"
#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/file_hashes.hpp"

#include <algorithm>
#include <fstream>

namespace troupe::pipeline {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kRecordFile = "stage.json";

fs::path record_file(const fs::path& folder) {
  return folder / kRecordFile;
}

Json figure_json(const Figure& figure) {
  if (!figure.low || !figure.high) return figure.mean;
  return {{"mean", figure.mean}, {"low", *figure.low}, {"high", *figure.high}};
}

std::optional<Figure> figure_from(const Json& json) {
  if (json.is_number()) return Figure{json.get<double>(), {}, {}};
  if (!json.is_object() || !json.contains("mean") || !json["mean"].is_number()) return std::nullopt;
  Figure out{json["mean"].get<double>(), {}, {}};
  for (auto [name, place] : {std::pair{"low", &out.low}, {"high", &out.high}}) {
    if (json.contains(name) && json[name].is_number()) *place = json[name].get<double>();
  }
  return out;
}

void flatten(const Json& json, const std::string& prefix, Figures& out) {
  for (const auto& [name, value] : json.items()) {
    if (out.size() >= limits::kStageFigures_max) return;
    const std::string full = prefix.empty() ? name : prefix + "." + name;
    if (const auto figure = figure_from(value)) {
      out[full] = *figure;
    } else if (value.is_object()) {
      flatten(value, full, out);
    }
  }
}

std::optional<Json> object_of(std::string_view line) {
  auto json = parse::bounded_json<Json>(line, {});
  if (!json || !json->is_object()) return std::nullopt;
  return std::move(*json);
}

// The end of a file, from the beginning of a line on where it is cut.
std::string end_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return {};
  const auto size = static_cast<std::uint64_t>(in.tellg());
  const std::uint64_t from =
      size > limits::kStageLog_bytes_max ? size - limits::kStageLog_bytes_max : 0;
  in.seekg(static_cast<std::streamoff>(from));
  std::string text(static_cast<std::size_t>(size - from), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (from > 0) text.erase(0, text.find('\n') + 1);
  return text;
}

Result<std::string> hash_of(const fs::path& path) {
  if (!fs::is_directory(path)) return store::cached_sha256(path);
  TROUPE_TRY_ASSIGN(entries, store::list_folder(path));
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : entries) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  if (files.empty()) return std::string("empty");
  return store::sha256_of_files(files);
}

std::string without(std::string text, const std::string& part) {
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at))
    text.erase(at, part.size());
  return text;
}

// The flag before a word of a command line, for messages.
std::string flag_at(const std::vector<std::string>& words, std::size_t at) {
  while (at > 0 && !words[at].starts_with("--"))
    --at;
  return words[at].starts_with("--") ? words[at] : "the command";
}

}  // namespace

std::optional<StageRecord> read_record(const fs::path& folder) {
  const auto text = store::read_all(record_file(folder));
  if (!text || text->empty()) return std::nullopt;
  const auto json = object_of(*text);
  if (!json) return std::nullopt;
  try {
    StageRecord out;
    out.id = json->value("stage", "");
    out.state = json->value("state", "");
    out.inputs.command = json->value("command", std::vector<std::string>{});
    out.inputs.files = json->value("inputs", std::map<std::string, std::string>{});
    out.attempts = json->value("attempts", std::uint64_t{0});
    out.losses = json->value("losses", std::uint64_t{0});
    out.wall_s = json->value("wall_s", 0.0);
    out.cpu_s = json->value("cpu_s", 0.0);
    out.steps = json->value("steps", std::uint64_t{0});
    out.error = json->value("error", "");
    const Json figures = json->value("figures", Json::object());
    for (const auto& [name, value] : figures.items()) {
      if (const auto figure = figure_from(value)) out.figures[name] = *figure;
    }
    return out;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;  // someone has edited it: the stage is run again
  }
}

Result<void> write_record(const fs::path& folder, const StageRecord& record) {
  Json json = {{"stage", record.id},
               {"state", record.state},
               {"command", record.inputs.command},
               {"inputs", record.inputs.files},
               {"attempts", record.attempts},
               {"losses", record.losses},
               {"wall_s", record.wall_s},
               {"cpu_s", record.cpu_s},
               {"steps", record.steps}};
  json["figures"] = Json::object();
  for (const auto& [name, figure] : record.figures)
    json["figures"][name] = figure_json(figure);
  if (!record.error.empty()) json["error"] = record.error;
  return store::replace_file(record_file(folder),
                             json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

Result<StageInputs> inputs_of(const std::vector<std::string>& words,
                              const fs::path& own,
                              const fs::path& root) {
  StageInputs out;
  const std::string folder = own.string();
  for (const std::string& word : words) {
    if (word == folder || word.starts_with(folder + "/")) {
      out.command.push_back("." + word.substr(folder.size()));
      continue;
    }
    out.command.push_back(without(word, root.string() + "/"));
    for (const std::string_view part : core::split(word, ",")) {
      std::error_code error;
      const fs::path path = part;
      const std::string name = without(std::string(part), root.string() + "/");
      // A plain word is a name, even if there is a folder of that name.
      const bool is_path = part.find_first_of("/.") != part.npos && part.find('\n') == part.npos;
      const bool there =
          is_path && (fs::is_regular_file(path, error) || fs::is_directory(path, error));
      if (!there || out.files.contains(name)) continue;
      TROUPE_TRY_ASSIGN(hash, hash_of(path));
      out.files[name] = hash;
    }
  }
  return out;
}

std::string difference(const StageInputs& before, const StageInputs& now) {
  for (std::size_t i = 0; i < std::max(before.command.size(), now.command.size()); ++i) {
    const std::string was = i < before.command.size() ? before.command[i] : "";
    const std::string is = i < now.command.size() ? now.command[i] : "";
    if (was == is) continue;
    if (was.empty()) return flag_at(now.command, i) + " is new";
    if (is.empty()) return flag_at(before.command, i) + " is gone";
    if (was.starts_with("--") || is.starts_with("--")) return was + " was there, now " + is;
    return flag_at(now.command, i) + " was " + was + " and is " + is;
  }
  for (const auto& [name, hash] : now.files) {
    const auto found = before.files.find(name);
    if (found == before.files.end() || found->second != hash) return name + " has changed";
  }
  return before == now ? "" : "a file that it named is gone";
}

StageFigures training_figures(const fs::path& metrics) {
  StageFigures out;
  std::ifstream in(metrics);
  for (std::string line; std::getline(in, line);) {
    const auto row = object_of(line);
    if (!row) continue;
    flatten(*row, "", out.figures);
    if (row->contains("step") && (*row)["step"].is_number_unsigned())
      out.steps = std::max(out.steps, (*row)["step"].get<std::uint64_t>());
  }
  return out;
}

StageFigures printed_figures(const fs::path& log) {
  StageFigures out;
  const std::string text = end_of(log);
  std::optional<Json> last;
  for (const std::string_view line : core::split(text, "\n")) {
    if (!line.starts_with("{")) continue;
    if (auto json = object_of(line)) last = std::move(json);
  }
  if (last) flatten(*last, "", out.figures);
  return out;
}

}  // namespace troupe::pipeline
