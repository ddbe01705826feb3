// The part of a report from status.json.
#include "apps/report/line_reader.hpp"
#include "apps/report/run_parts.hpp"
#include "runtime/core/texts.hpp"
#include "runtime/parse/bounded_json.hpp"

#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <fstream>
#include <initializer_list>
#include <string>

namespace troupe::report {
namespace {

constexpr std::size_t kParts_max = 1024;

// The members of these names that are numbers, texts or truths; texts cut.
ordered_json plain_part(const ordered_json& object, std::initializer_list<const char*> names) {
  ordered_json out = ordered_json::object();
  if (!object.is_object()) return out;
  for (const char* name : names) {
    const auto found = object.find(name);
    if (found == object.end()) continue;
    if (found->is_number() || found->is_boolean()) out[name] = *found;
    if (found->is_string()) out[name] = found->get<std::string>().substr(0, 4096);
  }
  return out;
}

ordered_json list_of(const ordered_json& object,
                     const char* name,
                     std::initializer_list<const char*> names) {
  ordered_json out = ordered_json::array();
  const auto list = object.find(name);
  if (list == object.end() || !list->is_array()) return out;
  for (const ordered_json& one : *list) {
    if (out.size() == kParts_max) break;
    out.push_back(plain_part(one, names));
  }
  return out;
}

// The numbers of an object or a list.
ordered_json numbers_of(const ordered_json& object, const char* name) {
  ordered_json out = ordered_json::array();
  const auto found = object.find(name);
  if (found == object.end() || !found->is_structured()) return out;
  for (const auto& [key, value] : found->items()) {
    if (value.is_number() && out.size() < kParts_max) out.push_back({key, value});
  }
  return out;
}

void add_idle_times(const ordered_json& status, ordered_json& roles) {
  const auto list = status.find("roles");
  for (std::size_t i = 0; i < roles.size(); ++i) {
    const ordered_json& role = (*list)[i];
    roles[i]["idle"] = role.is_object() ? numbers_of(role, "idle_s") : ordered_json::array();
  }
}

void add_last_lines(const ordered_json& status, ordered_json& lost) {
  const auto list = status.find("lost");
  for (std::size_t i = 0; i < lost.size(); ++i) {
    ordered_json lines = ordered_json::array();
    const ordered_json& node = (*list)[i];
    const auto found = node.is_object() ? node.find("last_lines") : node.end();
    if (node.is_object() && found != node.end() && found->is_array()) {
      for (const ordered_json& line : *found) {
        if (line.is_string() && lines.size() < 20)
          lines.push_back(line.get<std::string>().substr(0, 4096));
      }
    }
    lost[i]["last_lines"] = std::move(lines);
  }
}

}  // namespace

ordered_json company_json(const std::filesystem::path& run, Notes& notes) {
  const auto whole = read_whole(run / "status.json", limits::kReportFile_bytes_max);
  if (!whole) return nullptr;
  const auto status = parse::bounded_json<ordered_json>(whole->text, {});
  if (!status || !status->is_object()) {
    notes.add("status.json is damaged: no shares of time by role");
    return nullptr;
  }
  ordered_json roles =
      list_of(*status, "roles",
              {"name", "node", "state", "busy_s", "paused_s", "wall_s", "frames_in", "frames_out"});
  add_idle_times(*status, roles);
  ordered_json lost = list_of(*status, "lost", {"name", "host", "cause"});
  add_last_lines(*status, lost);
  ordered_json out = plain_part(*status, {"watched_s", "busy_together_s"});
  out["roles"] = std::move(roles);
  out["nodes"] = list_of(*status, "nodes", {"name", "host", "cores", "memory_bytes", "health"});
  out["parts"] =
      list_of(*status, "cast", {"name", "node", "state", "losses", "sick", "last_cause"});
  out["lost"] = std::move(lost);
  const auto found = status->find("run");
  const bool known = found != status->end() && found->is_object();
  out["ages"] = known ? numbers_of(*found, "staleness_tokens") : ordered_json::array();
  out["counts"] = known ? numbers_of(*found, "counts") : ordered_json::array();
  return out;
}

// Looks into the kernel's list of locks and takes none: a run that starts at this moment must not
// find its folder in use.
bool is_running(const std::filesystem::path& run) {
  struct stat lock {};
  if (::stat((run / "run.lock").c_str(), &lock) != 0) return false;
  const std::string place =
      core::printed(" %02x:%02x:%lu ", major(lock.st_dev), minor(lock.st_dev), lock.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    if (line.find("FLOCK") != line.npos && line.find(place) != line.npos) return true;
  }
  return false;
}

}  // namespace troupe::report
