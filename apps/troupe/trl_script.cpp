#include "apps/troupe/trl_script.hpp"

#include "apps/side/side_program.hpp"
#include "apps/troupe/trl_script_source.hpp"

#include <chrono>
#include <utility>

namespace troupe::app {
namespace {

constexpr core::Duration kScript_max = std::chrono::seconds(20);
constexpr std::size_t kScriptLine_bytes_max = 4u << 20;

core::Result<side::Json> asked(const std::string& file) {
  TROUPE_TRY_ASSIGN(program, side::SideProgram::start({.what = "the reader of Python scripts",
                                                       .text = kTrlScriptSource,
                                                       .job = {{"file", file}},
                                                       .line_bytes_max = kScriptLine_bytes_max}));
  program.end_input();
  while (program.silence() < kScript_max) {
    if (auto answer = program.next()) return std::move(*answer);
    if (program.is_over() || program.has_endless_line())
      return core::fail(program.lost().error.within(file));
    program.listen(kScript_max);
  }
  return fail(ErrorCode::kResources, file + ": python3, which reads Python scripts, gave no answer",
              "write the settings as flags into a shell script");
}

}  // namespace

core::Result<config::PythonScript> read_trl_script(const std::filesystem::path& file) {
  const std::string name = file.string();
  TROUPE_TRY_ASSIGN(said, asked(name));
  const auto place = [&](const side::Json& one) {
    return name + ":" + std::to_string(one.value("line", 0));
  };
  if (said.contains("error")) {
    return fail(ErrorCode::kConfig,
                (said.value("line", 0) > 0 ? place(said) : name) + ": " + said.value("error", ""),
                "name a script that Python reads");
  }
  config::PythonScript script;
  for (const side::Json& one : said.value("configs", side::Json::array()))
    script.configs.push_back({one.value("name", ""), one.value("line", 0)});
  for (const side::Json& one : said.value("settings", side::Json::array())) {
    config::PeerSetting setting;
    setting.written = {one.value("name", ""), one.value("values", std::vector<std::string>()),
                       one.value("list", false), place(one)};
    setting.unknown = one.value("unknown", "");
    script.settings.push_back(std::move(setting));
  }
  return script;
}

}  // namespace troupe::app
