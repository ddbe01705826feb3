#include "apps/session/trace_file.hpp"

#include <nlohmann/json.hpp>

namespace troupe::session {

core::Result<TraceFile> TraceFile::create(const std::filesystem::path& file) {
  std::ofstream out(file, std::ios::trunc);
  if (!out) {
    return core::fail(core::ErrorCode::kResources, "cannot write " + file.string(),
                      "--log.trace false turns it off");
  }
  out << "[";
  return TraceFile(std::move(out));
}

void TraceFile::line(const std::string& text) {
  out_ << (first_ ? "\n" : ",\n") << text;
  first_ = false;
}

int TraceFile::number_of(std::map<std::string, int>& known,
                         const std::string& name,
                         const char* kind,
                         int pid) {
  const auto [place, added] = known.try_emplace(name, static_cast<int>(known.size()) + 1);
  if (added) {
    const int process = pid > 0 ? pid : place->second;
    line(nlohmann::json{{"ph", "M"},
                        {"name", kind},
                        {"pid", process},
                        {"tid", pid > 0 ? place->second : 0},
                        {"args", {{"name", name}}}}
             .dump());
  }
  return place->second;
}

void TraceFile::add(const std::string& process,
                    const std::string& role,
                    const std::vector<wire::Span>& spans) {
  const int pid = number_of(processes_, process, "process_name", 0);
  const int tid = number_of(roles_, role, "thread_name", pid);
  for (const wire::Span& span : spans) {
    line(nlohmann::json{{"ph", "X"},
                        {"name", span.cause},
                        {"cat", span.state},
                        {"pid", pid},
                        {"tid", tid},
                        {"ts", static_cast<double>(span.begin) / 1000.0},
                        {"dur", static_cast<double>(span.end - span.begin) / 1000.0}}
             .dump());
  }
}

void TraceFile::close() {
  if (!out_.is_open()) return;
  out_ << "\n]\n";
  out_.close();
}

}  // namespace troupe::session
