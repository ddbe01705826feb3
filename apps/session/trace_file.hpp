// Writes RUN/trace.json, a timeline of what each role did, for chrome://tracing and Perfetto. `add`
// appends spans in batches. The file is readable after `close`, and after a crash too (the format
// permits a missing end). Owned by the status service, used on its strand.
#pragma once

#include "runtime/core/result.hpp"
#include "runtime/wire/role_report.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace troupe::session {

class TraceFile {
 public:
  static core::Result<TraceFile> create(const std::filesystem::path& file);
  // Appends finished spans of a role. `process`: the node that the role runs in; it becomes a
  // process of the trace, the role a thread.
  void add(const std::string& process,
           const std::string& role,
           const std::vector<wire::Span>& spans);
  void close();

 private:
  explicit TraceFile(std::ofstream out) : out_(std::move(out)) {}
  int number_of(std::map<std::string, int>& known,
                const std::string& name,
                const char* kind,
                int pid);
  void line(const std::string& text);

  std::ofstream out_;
  std::map<std::string, int> processes_, roles_;
  bool first_ = true;
};

}  // namespace troupe::session
