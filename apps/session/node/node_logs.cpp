#include "apps/session/node/node_logs.hpp"

#include "apps/session/limits.hpp"
#include "apps/session/node/output_keeper.hpp"
#include "runtime/core/owned_fd.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

namespace troupe::session {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kWaiting_bytes_max = 1u << 20;
constexpr std::size_t kTail_bytes = 8u << 10;  // of a file, for its last lines
// What a process printed before it ended is written soon.
constexpr std::chrono::milliseconds kLastWords{100}, kLastWordsLook{5};

// The last bytes of a file; it may be written meanwhile.
std::string tail_of(const fs::path& file) {
  const core::OwnedFd in(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat now {};
  if (!in || ::fstat(in.get(), &now) != 0 || !S_ISREG(now.st_mode)) return "";
  std::string text(kTail_bytes, '\0');
  const off_t begin = std::max<off_t>(now.st_size - static_cast<off_t>(kTail_bytes), 0);
  const auto count = ::pread(in.get(), text.data(), text.size(), begin);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  if (begin > 0) text.erase(0, std::min(text.find('\n'), text.size()));
  return text;
}

}  // namespace

NodeLogs::NodeLogs(fs::path folder)
    : folder_(fs::absolute(folder)),
      writer_([this](std::stop_token stop) { write_all(std::move(stop)); }) {}

NodeLogs::~NodeLogs() {
  writer_.request_stop();
}

fs::path NodeLogs::file_of(const std::string& node) const {
  return folder_ / (node.substr(node.find('/') + 1) + ".log");
}

void NodeLogs::put(actors::PutLog lines, std::uint32_t pid, core::TimePoint now) {
  if (!sources_.contains(lines.node) && sources_.size() >= limits::kNodeLogs_max) return;
  Source& source = sources_[lines.node];
  if (source.pid != pid) source.next = 0;
  source.pid = pid;
  const std::uint64_t had = source.next > lines.first ? source.next - lines.first : 0;
  if (had == 0) source.lines.drop(lines.dropped);
  std::string text;
  std::uint64_t count = 0;
  for (std::size_t i = had; i < lines.lines.size(); ++i) {
    const std::string line = safe_log_line(lines.lines[i]);
    if (!source.lines.add(line, now, text)) continue;
    ++count;
    source.last.push_back(line);
    if (source.last.size() > limits::kLastLines_max) source.last.pop_front();
  }
  source.next = std::max(source.next, lines.first + lines.lines.size());
  if (count > 0 && !write_later({file_of(lines.node), std::move(text)})) source.lines.drop(count);
}

// False when the disk is too slow for what waits already.
bool NodeLogs::write_later(Text text) {
  const std::lock_guard lock(mutex_);
  if (waiting_bytes_ + text.text.size() > kWaiting_bytes_max) return false;
  waiting_bytes_ += text.text.size();
  waiting_.push_back(std::move(text));
  wake_.notify_all();
  return true;
}

void NodeLogs::write_all(std::stop_token stop) {
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, stop, [this] { return !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Text text = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= text.text.size();
    lock.unlock();
    append_to_log(text.file, text.text);
  }
}

std::vector<std::string> NodeLogs::last_lines(const std::string& node) const {
  const auto source = sources_.find(node);
  if (source != sources_.end()) return {source->second.last.begin(), source->second.last.end()};
  for (auto left = kLastWords; left.count() > 0 && keeper_writes(file_of(node));
       left -= kLastWordsLook)
    std::this_thread::sleep_for(kLastWordsLook);
  std::vector<std::string> lines;
  const std::string text = tail_of(file_of(node));
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (std::string line = safe_log_line(rest.substr(0, end)); !line.empty())
      lines.push_back(std::move(line));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (lines.size() > limits::kLastLines_max)
    lines.erase(lines.begin(), lines.end() - limits::kLastLines_max);
  return lines;
}

}  // namespace troupe::session
