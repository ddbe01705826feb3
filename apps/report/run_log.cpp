// The parts of a report from its logs: troupe.log, the ledger, those of nodes.
#include "apps/report/json_members.hpp"
#include "apps/report/line_reader.hpp"
#include "apps/report/run_parts.hpp"
#include "runtime/parse/bounded_json.hpp"
#include "runtime/store/ledger.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <deque>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace troupe::report {
namespace {

namespace fs = std::filesystem;
// Words for faults in lines that the company, the controller and the sessions write.
constexpr std::string_view kFaultWords[] = {
    " lost",           "given up",     "started again",    " replaced:",
    "is gone",         "failed",       "cannot",           "could not",
    "error",           "warning",      "waiting for",      "waits for",
    "silent",          "set aside",    "not finite",       "going on from",
    "is taken down",   "did not join", "does not stop",    "no progress",
    "wedged",          "refused",      "killed",           "damaged",
    "without a score", "no score",     "is sick",          "going back",
    "interrupted",     "retry",        "sampled elsewhere"};

// The first half of a list that may grow without bound, and its last half.
class Ends {
 public:
  explicit Ends(std::size_t count) : half_(count / 2) {}

  void add(ordered_json one) {
    if (first_.size() < half_) return first_.push_back(std::move(one));
    last_.push_back({count_++, std::move(one)});
    if (last_.size() > half_) {
      last_.pop_front();
      ++left_out_;
    }
  }
  std::uint64_t left_out() const { return left_out_; }
  void append_to(ordered_json& list) && {
    for (ordered_json& one : first_)
      list.push_back(std::move(one));
    for (auto& [place, one] : last_)
      list.push_back(std::move(one));
  }

 private:
  std::size_t half_;
  std::vector<ordered_json> first_;
  std::deque<std::pair<std::uint64_t, ordered_json>> last_;
  std::uint64_t count_ = 0, left_out_ = 0;
};

// "2026-01-02T03:04:05.678+00:00 info message", as observe::Log writes it; the rest of the line for
// another form.
ordered_json line_json(std::string_view line, std::uint64_t number) {
  const auto time_end = line.find(' ');
  const auto level_end = time_end == line.npos ? line.npos : line.find(' ', time_end + 1);
  const bool timed = level_end != line.npos && time_end >= 19 && line[4] == '-' && line[10] == 'T';
  const std::string_view text = timed ? line.substr(level_end + 1) : line;
  ordered_json one = {{"n", number},
                      {"t", timed ? std::string(line.substr(0, time_end)) : ""},
                      {"text", std::string(text.substr(0, 4096))}};
  if (tells_of_fault(text)) one["fault"] = true;
  return one;
}

// Where rewards change: "reward set 2 from update 21 on: ..." (RunReporter). By the set, so that
// what a resumed run says again counts once; the set of the first update is no change. And where a
// run went back to: "going back from update 12 to update 10: ...".
class Marks {
 public:
  void add(std::string_view text) {
    add_return(text);
    std::uint64_t set = 0, update = 0;
    if (!take(text, "reward set ", set) || !take(text, " from update ", update)) return;
    if (update < 2 || (marks_.size() >= limits::kReportMarks_max && !marks_.contains(set))) return;
    const auto rest = text.find(": ");
    marks_[set] = {
        {"step", update},
        {"text", "rewards from here on: " +
                     std::string(rest == text.npos ? text : text.substr(rest + 2, 500))}};
  }
  ordered_json all() const {
    ordered_json out = ordered_json::array();
    for (const auto& [set, mark] : marks_)
      out.push_back(mark);
    for (const ordered_json& mark : returns_)
      out.push_back(mark);
    return out;
  }

 private:
  void add_return(std::string_view text) {
    for (const std::string_view unit : {"update ", "step "}) {
      std::string_view rest = text;
      std::uint64_t from = 0, to = 0;
      const std::string going = "going back from " + std::string(unit);
      if (!take(rest, going, from) || !take(rest, " to " + std::string(unit), to)) continue;
      if (returns_.size() >= limits::kReportMarks_max) return;
      returns_.push_back({{"step", to + 1},
                          {"text", "here again after " + std::string(unit) + std::to_string(from) +
                                       std::string(rest.substr(0, 500))}});
    }
  }
  // Takes `words` and the number after them from the beginning of the text.
  static bool take(std::string_view& text, std::string_view words, std::uint64_t& number) {
    if (!text.starts_with(words)) return false;
    text.remove_prefix(words.size());
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
    return read.ec == std::errc();
  }

  std::map<std::uint64_t, ordered_json> marks_;
  std::vector<ordered_json> returns_;
};

struct LedgerSums {
  std::uint64_t groups = 0, samples = 0, replaced = 0, damaged = 0;
  std::map<std::uint64_t, std::uint64_t> spans;  // groups by how many versions their tokens span

  void add(const ordered_json& record) {
    ++groups;
    samples += whole_number(record, "samples");
    if (const auto found = record.find("replaced"); found != record.end() && found->is_array())
      replaced += found->size();
    const std::uint64_t oldest = whole_number(record, "version_min");
    const std::uint64_t newest = whole_number(record, "version_max");
    if (newest >= oldest && (spans.size() < 1000 || spans.contains(newest - oldest)))
      ++spans[newest - oldest];
  }
};

// The last bytes of a file, from the begin of a line on where that is known.
std::string end_of(const fs::path& file, std::uint64_t bytes) {
  std::ifstream in(file, std::ios::binary);
  const std::uint64_t wanted = std::min<std::uint64_t>(bytes, limits::kReportNodeLog_bytes_max);
  in.seekg(static_cast<std::streamoff>(bytes - wanted));
  std::string text(wanted, '\0');
  in.read(text.data(), static_cast<std::streamsize>(wanted));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  if (wanted < bytes) {
    const auto line = text.find('\n');
    if (line != text.npos) text.erase(0, line + 1);
  }
  return text;
}

}  // namespace

bool tells_of_fault(std::string_view line) {
  return std::any_of(std::begin(kFaultWords), std::end(kFaultWords),
                     [&](std::string_view words) { return line.find(words) != line.npos; });
}

ordered_json log_json(const fs::path& run, Notes& notes) {
  LineReader reader(run / "troupe.log", 64 << 10);
  Ends faults(limits::kReportEvents_max / 2), others(limits::kReportEvents_max / 2);
  Marks marks;
  while (const auto line = reader.next()) {
    ordered_json one = line_json(*line, reader.line());
    marks.add(one["text"].get_ref<const std::string&>());
    Ends& kind = one.contains("fault") ? faults : others;
    kind.add(std::move(one));
  }
  ordered_json lines = ordered_json::array();
  const std::uint64_t left_out = faults.left_out() + others.left_out();
  std::move(faults).append_to(lines);
  std::move(others).append_to(lines);
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a["n"] < b["n"]; });
  if (reader.too_long() > 0) {
    notes.add("troupe.log: " + std::to_string(reader.too_long()) +
              " lines are longer than 64 KiB and left out");
  }
  if (reader.broken()) notes.add("troupe.log: cannot be read to its end");
  return {{"lines", std::move(lines)},
          {"all", reader.line()},
          {"left_out", left_out},
          {"marks", marks.all()}};
}

ordered_json ledger_json(const fs::path& run, Notes& notes) {
  LineReader reader(run / "ledger.log");
  std::error_code error;
  if (!fs::exists(run / "ledger.log", error)) return nullptr;
  LedgerSums sums;
  while (const auto line = reader.next()) {
    const auto record = store::ledger_record(*line);
    const auto object = parse::bounded_json<ordered_json>(record ? record->text : "", {});
    if (object && object->is_object()) {
      sums.add(*object);
    } else {
      ++sums.damaged;
    }
  }
  sums.damaged += reader.too_long();
  if (sums.damaged > 0)
    notes.add("ledger.log: " + std::to_string(sums.damaged) + " damaged records are left out");
  if (reader.torn()) notes.add("ledger.log: the last record has no end; it is left out");
  ordered_json spans = ordered_json::array();
  for (const auto& [span, groups] : sums.spans)
    spans.push_back({span, groups});
  return {{"groups", sums.groups},
          {"samples", sums.samples},
          {"replaced", sums.replaced},
          {"damaged", sums.damaged},
          {"spans", std::move(spans)}};
}

ordered_json node_logs_json(const fs::path& run, Notes& notes) {
  std::map<std::string, std::pair<fs::path, std::uint64_t>> files;
  std::error_code error;
  std::uint64_t left_out = 0;
  for (fs::directory_iterator it(run / "nodes", error), end; !error && it != end;
       it.increment(error)) {
    std::error_code no_file;
    if (it->path().extension() != ".log" || !it->is_regular_file(no_file)) continue;
    const std::uint64_t bytes = it->file_size(no_file);
    if (no_file) continue;
    if (files.size() < limits::kReportNodes_max) {
      files[it->path().stem().string()] = {it->path(), bytes};
    } else {
      ++left_out;
    }
  }
  if (left_out > 0)
    notes.add("nodes/: logs of " + std::to_string(left_out) + " further nodes are left out");
  ordered_json out = ordered_json::array();
  for (const auto& [name, file] : files)
    out.push_back(
        {{"name", name}, {"bytes", file.second}, {"end", end_of(file.first, file.second)}});
  return out;
}

ordered_json failed_steps_json(const fs::path& run) {
  ordered_json out = ordered_json::array();
  std::error_code error;
  for (fs::directory_iterator it(run, error), end; !error && it != end && out.size() < 100;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("nonfinite_step_") || name.starts_with("failed_step_"))
      out.push_back(name);
  }
  return out;
}

}  // namespace troupe::report
