#include "apps/loggers/side_process.hpp"

#include "apps/loggers/limits.hpp"
#include "apps/loggers/side_process_source.hpp"
#include "runtime/core/secret.hpp"
#include "runtime/parse/bounded_json.hpp"
#include "runtime/store/append_file.hpp"
#include "runtime/store/atomic_folder.hpp"
#include "runtime/store/io_error.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace troupe::app {
namespace {

namespace fs = std::filesystem;
using core::Result;
using Json = nlohmann::json;

core::TimePoint steady_now() {
  return std::chrono::steady_clock::now();
}

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

std::string json_of(const LoggerSettings& settings, const std::string& id) {
  const auto text = [](const std::optional<std::string>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  const Json json = {{"logger", settings.logger},
                     {"run", settings.run.string()},
                     {"id", id},
                     {"follow", settings.follow},
                     {"project", text(settings.project)},
                     {"name", text(settings.name)},
                     {"group", text(settings.group)},
                     {"org", text(settings.org)},
                     {"uri", text(settings.uri)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

struct Pipe {
  core::OwnedFd read, write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return core::fail(core::ErrorCode::kResources,
                      std::string("cannot reach a logger: ") + std::strerror(errno));
  }
  return Pipe{core::OwnedFd(ends[0]), core::OwnedFd(ends[1])};
}

}  // namespace

Result<SideProcess> SideProcess::start(const LoggerSettings& settings) {
  const fs::path folder = settings.run / "loggers";
  TROUPE_TRY(store::make_folder(folder));
  TROUPE_TRY_ASSIGN(id, id_of(folder));
  const fs::path log = folder / (settings.logger + ".log");
  core::OwnedFd errors(::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!errors) return store::io_failure("write", log, errno);
  TROUPE_TRY_ASSIGN(to_child, make_pipe());
  TROUPE_TRY_ASSIGN(from_child, make_pipe());
  core::ChildSpec spec;
  spec.words = {"python3", "-I", "-c", kSideProcessSource, json_of(settings, id)};
  spec.descriptors = {{to_child.read.get(), STDIN_FILENO},
                      {from_child.write.get(), STDOUT_FILENO},
                      {errors.get(), STDERR_FILENO}};
  SideProcess made;
  TROUPE_TRY_SET(made.child_, core::ChildProcess::start("a logger", std::move(spec)));
  made.in_ = std::move(to_child.write);
  made.out_ = std::move(from_child.read);
  ::fcntl(made.out_.get(), F_SETFL, O_NONBLOCK);
  made.heard_ = steady_now();
  return made;
}

void SideProcess::listen(core::Duration limit, const Note& note) {
  pollfd polled{out_.get(), POLLIN, 0};
  const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(limit).count();
  if (!out_ || ::poll(&polled, 1, static_cast<int>(wait)) <= 0) return;
  char chunk[4096];
  for (;;) {
    const ssize_t count = ::read(out_.get(), chunk, sizeof chunk);
    if (count == 0) out_ = core::OwnedFd();  // it has ended
    if (count <= 0) break;
    pending_.append(chunk, static_cast<std::size_t>(count));
  }
  for (auto end = pending_.find('\n'); end != pending_.npos; end = pending_.find('\n')) {
    take(pending_.substr(0, end), note);
    pending_.erase(0, end + 1);
  }
  if (pending_.size() > limits::kLoggerLine_bytes_max) pending_.clear();
}

void SideProcess::take(const std::string& line, const Note& note) {
  const auto json = parse::bounded_json<Json>(line, {});
  if (!json || !json->is_object()) return;
  heard_ = steady_now();
  const auto number = [&](const char* name) {
    return json->contains(name) && (*json)[name].is_number() ? (*json)[name].get<double>() : -1;
  };
  if (const double stuck = number("alive"); stuck >= 0)
    stuck_ = std::chrono::duration_cast<core::Duration>(std::chrono::duration<double>(stuck));
  if (const double sent = number("sent"); sent >= 0) sent_ = static_cast<std::uint64_t>(sent);
  if (json->contains("ended")) finished_ = true;
  if (json->contains("note") && (*json)["note"].is_string())
    note((*json)["note"].get<std::string>().substr(0, 1000));
}

void SideProcess::end() {
  if (!in_) return;
  [[maybe_unused]] const auto written = ::write(in_.get(), "end\n", 4);
  in_ = core::OwnedFd();
}

void SideProcess::kill() {
  child_.kill();
}

bool SideProcess::frozen() const {
  return steady_now() - heard_ > limits::kLoggerSilence || stuck_ > limits::kLoggerWork;
}

std::string SideProcess::how_it_ended() {
  const auto status = child_.wait(core::Duration::zero());
  return status ? core::how_it_ended(*status) : "is running";
}

}  // namespace troupe::app
