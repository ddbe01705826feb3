#include "apps/hub/hub.hpp"

#include "apps/cli/build_facts.hpp"
#include "apps/cli/stop_signal.hpp"
#include "apps/hub/client_process.hpp"
#include "apps/hub/consent.hpp"
#include "apps/hub/moved_line.hpp"
#include "runtime/core/shell_word.hpp"
#include "runtime/observe/terminal_text.hpp"

#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <utility>

namespace troupe::hub {
namespace {

namespace fs = std::filesystem;
constexpr std::chrono::milliseconds kLook{200};

std::string text_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

std::uint64_t number_of(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

ErrorCode code_of(const std::string& kind) {
  constexpr std::pair<std::string_view, ErrorCode> kKinds[] = {
      {"not_found", ErrorCode::kNotFound}, {"offline", ErrorCode::kNotFound},
      {"rows", ErrorCode::kConfig},        {"denied", ErrorCode::kConfig},
      {"name", ErrorCode::kConfig},        {"damaged", ErrorCode::kData},
      {"no_room", ErrorCode::kNoRoom},     {"client", ErrorCode::kResources}};
  for (const auto& [name, code] : kKinds)
    if (name == kind) return code;
  return ErrorCode::kPeerLost;
}

// One job of the client: its notes and its progress are shown, its plan is put to `consent`.
class Job {
 public:
  using Consent = std::function<Result<void>(const Json& plan)>;
  Job(std::string name, Consent consent) : name_(std::move(name)), consent_(std::move(consent)) {}

  // What it has done.
  Result<Json> run(const Json& job) {
    TROUPE_TRY_ASSIGN(process, ClientProcess::start(job));
    for (;;) {
      auto line = process.next(kLook);
      if (cli::stop_requested()) {
        process.kill();
        return fail(ErrorCode::kInterrupted, "stopped", "the same command goes on");
      }
      if (!line) return fail(note_.empty() ? line.error() : line.error().also(note_));
      if (!*line) continue;
      TROUPE_TRY_ASSIGN(done, take(**line, process));
      if (done) return std::move(*done);
    }
  }

 private:
  Result<std::optional<Json>> take(Json& line, ClientProcess& process) {
    if (line.contains("done")) return std::optional(std::move(line["done"]));
    if (line.contains("error")) {
      const Json& error = line["error"];
      const std::string advice = text_of(error, "advice");
      const ErrorCode code = code_of(text_of(error, "kind"));
      if (advice.empty()) return fail(code, text_of(error, "what"));
      return fail(code, text_of(error, "what"), advice);
    }
    if (line.contains("note")) {
      note_ = text_of(line, "note");
      if (shown_) {
        shown_->note(note_);
      } else {
        std::fprintf(stderr, "%s\n", observe::terminal_safe(note_).c_str());
      }
    } else if (line.contains("plan")) {
      TROUPE_TRY(consent_(line["plan"]));
      shown_.emplace(name_, number_of(line["plan"], "total"));
      process.go();
    } else if (line.contains("moved") && shown_) {
      shown_->show(number_of(line, "moved"));
    }
    return std::optional<Json>();
  }

  std::string name_, note_;
  Consent consent_;
  std::optional<MovedLine> shown_;
};

std::string get_command(const names::HubName& name) {
  const bool model = name.kind == names::Kind::kModel;
  return "`troupe get " + name.text() + (model ? "" : " --dataset") + " --yes`";
}

core::Failure no_consent(const names::HubName& name) {
  return fail(ErrorCode::kConfig,
              name.text() + " is not in the hub cache, and nothing is downloaded without a yes",
              get_command(name) + " fetches it; --yes or TROUPE_YES=1 lets this command do so");
}

Result<void> ask_for(const names::HubName& name, const Json& plan) {
  if (said_yes()) return {};
  if (!can_ask()) return no_consent(name);
  const auto files = number_of(plan, "files");
  const std::string what =
      name.text() + ": " + std::to_string(files) + (files == 1 ? " file, " : " files, ") +
      size_text(number_of(plan, "bytes")) + " from " + text_of(plan, "from") + " into " +
      text_of(plan, "where") + " (" + size_text(number_of(plan, "free")) + " free).\nDownload?";
  if (ask(observe::terminal_safe(what))) return {};
  return fail(ErrorCode::kInterrupted, "nothing was downloaded");
}

}  // namespace

Result<Fetched> fetch(const names::HubName& name, bool check) {
  if (!said_yes() && !can_ask() && !names::offline()) {
    auto there =
        name.kind == names::Kind::kModel ? names::find_model(name) : names::find_rows(name);
    if (!there) return no_consent(name);
    return Fetched{std::move(*there), "", "", 0};
  }
  const auto part = [](const std::string& text) {
    return text.empty() ? Json(nullptr) : Json(text);
  };
  Job job(name.text(), [&](const Json& plan) { return ask_for(name, plan); });
  TROUPE_TRY_ASSIGN(done, job.run({{"do", "get"},
                                   {"kind", name.kind == names::Kind::kModel ? "model" : "dataset"},
                                   {"name", name.repository},
                                   {"revision", part(name.revision)},
                                   {"first", part(name.first)},
                                   {"second", part(name.second)},
                                   {"check", check},
                                   {"version", cli::build_version()}}));
  Fetched fetched{{text_of(done, "commit"), text_of(done, "folder"), {}},
                  text_of(done, "config"),
                  text_of(done, "split"),
                  number_of(done, "fetched")};
  if (name.kind == names::Kind::kDataset && done.contains("files") && done["files"].is_array()) {
    for (const Json& file : done["files"])
      if (file.is_string())
        fetched.found.files.push_back(fetched.found.folder / file.get<std::string>());
  }
  return fetched;
}

Result<names::Found> fetch_named(const names::HubName& name) {
  TROUPE_TRY_ASSIGN(fetched, fetch(name));
  if (fetched.bytes > 0) {
    std::fprintf(stderr, "%s: %s, commit %s\n", name.text().c_str(),
                 size_text(fetched.bytes).c_str(), fetched.found.commit.c_str());
  }
  return std::move(fetched.found);
}

Result<std::string> push(const Upload& upload) {
  const auto consent = [&](const Json& plan) -> Result<void> {
    for (const Json& row : plan.value("listed", Json::array())) {
      if (!row.is_array() || row.size() != 2 || !row[0].is_string()) continue;
      const auto bytes = row[1].is_number_unsigned() ? row[1].get<std::uint64_t>() : 0;
      std::fprintf(stderr, "  %s, %s\n", row[0].get<std::string>().c_str(),
                   size_text(bytes).c_str());
    }
    const std::string what = std::to_string(number_of(plan, "files")) + " files, " +
                             size_text(number_of(plan, "bytes")) + ", to " + text_of(plan, "from") +
                             "/" + upload.name + " (" +
                             (upload.is_private ? "private" : "public, if it is new") + ")";
    std::fprintf(stderr, "%s\n", what.c_str());
    if (upload.dry || said_yes()) return {};
    if (!can_ask()) {
      return fail(ErrorCode::kConfig, "nothing is uploaded without a yes",
                  "add --yes, or set TROUPE_YES=1; --dry-run only lists the files");
    }
    if (ask("Upload?")) return {};
    return fail(ErrorCode::kInterrupted, "nothing was uploaded");
  };
  Job job(upload.name, consent);
  TROUPE_TRY_ASSIGN(done, job.run({{"do", "push"},
                                   {"kind", "model"},
                                   {"name", upload.name},
                                   {"revision", nullptr},
                                   {"folder", upload.folder.string()},
                                   {"card", upload.card},
                                   {"private", upload.is_private},
                                   {"dry", upload.dry},
                                   {"message", "Upload by Troupe"},
                                   {"version", cli::build_version()}}));
  return text_of(done, "url");
}

}  // namespace troupe::hub
