#include "apps/loggers/side_process.hpp"

#include "apps/loggers/limits.hpp"
#include "apps/loggers/side_process_source.hpp"
#include "runtime/core/secret.hpp"
#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/io_error.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

namespace troupe::loggers {
namespace {

namespace fs = std::filesystem;

// What names the run to the services, for good: RUN/loggers/id.
Result<std::string> id_of(const fs::path& folder) {
  const fs::path file = folder / "id";
  TROUPE_TRY_ASSIGN(text, store::read_all(file));
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  if (text.size() == 32 && text.find_first_not_of("0123456789abcdef") == text.npos) return text;
  const std::string fresh = core::random_hex(16);
  TROUPE_TRY(store::replace_file(file, fresh + "\n"));
  return fresh;
}

Json json_of(const LoggerSettings& settings, const std::string& id) {
  const auto text = [](const std::optional<std::string>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  return {{"logger", settings.logger},
          {"run", settings.run.string()},
          {"id", id},
          {"follow", settings.follow},
          {"project", text(settings.project)},
          {"name", text(settings.name)},
          {"group", text(settings.group)},
          {"org", text(settings.org)},
          {"uri", text(settings.uri)}};
}

}  // namespace

Result<SideProcess> SideProcess::start(const LoggerSettings& settings) {
  const fs::path folder = settings.run / "loggers";
  TROUPE_TRY(store::make_folder(folder));
  TROUPE_TRY_ASSIGN(id, id_of(folder));
  const fs::path log = folder / (settings.logger + ".log");
  core::OwnedFd errors(::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!errors) return store::io_failure("write", log, errno);
  TROUPE_TRY_ASSIGN(program,
                    side::SideProgram::start({.what = "a logger",
                                              .text = kSideProcessSource,
                                              .job = json_of(settings, id),
                                              .line_bytes_max = limits::kLoggerLine_bytes_max,
                                              .errors = errors.get()}));
  return SideProcess(std::move(program));
}

void SideProcess::listen(core::Duration limit, const Note& note) {
  program_.listen(limit);
  while (const auto json = program_.next())
    take(*json, note);
  if (program_.has_endless_line()) program_.drop_line();
}

void SideProcess::take(const Json& json, const Note& note) {
  const auto number = [&](const char* name) {
    return json.contains(name) && json[name].is_number() ? json[name].get<double>() : -1;
  };
  if (const double stuck = number("alive"); stuck >= 0)
    stuck_ = std::chrono::duration_cast<core::Duration>(std::chrono::duration<double>(stuck));
  if (const double sent = number("sent"); sent >= 0) sent_ = static_cast<std::uint64_t>(sent);
  if (json.contains("ended")) finished_ = true;
  if (json.contains("note") && json["note"].is_string())
    note(json["note"].get<std::string>().substr(0, 1000));
}

void SideProcess::end() {
  if (!program_.has_input()) return;
  program_.say("end\n");
  program_.end_input();
}

bool SideProcess::frozen() const {
  return program_.silence() > limits::kLoggerSilence || stuck_ > limits::kLoggerWork;
}

std::string SideProcess::how_it_ended() {
  const auto status = program_.child().wait(core::Duration::zero());
  return status ? core::how_it_ended(*status) : "is running";
}

}  // namespace troupe::loggers
