// `troupe chat`: a dialogue with a chat model, streamed. Lines that begin with '/' are commands.
// Ctrl-C ends an answer; at the prompt it ends the program.
#include "apps/cli/dtype_flag.hpp"
#include "apps/cli/engine_host.hpp"
#include "apps/cli/sampling_flags.hpp"
#include "apps/cli/stop_signal.hpp"
#include "apps/troupe/commands.hpp"
#include "apps/troupe/stream_printer.hpp"
#include "runtime/core/rng.hpp"
#include "runtime/observe/terminal_text.hpp"

#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <cstdio>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace troupe::app {
namespace {

constexpr const char* kChatCommands =
    "/reset forgets the dialogue   /system TEXT sets the system message   /params [NAME VALUE] "
    "shows\n"
    "or changes sampling (temperature, top-p, top-k, min-p, max-new-tokens, seed)   /quit or /exit "
    "ends\n";

termios before = {};  // the terminal's settings at the start; global for the signal handler

// Gives the terminal its settings back, for typing; the signal handler calls this, too.
void listen() {
  ::tcsetattr(0, TCSANOW, &before);
}

// Reads lines from a terminal, file or pipe. While the program computes, the terminal does not
// echo, so that typed text does not mix with the output. Whole lines typed meanwhile answer the
// next prompts; an unfinished line appears after the next prompt. One object per process. The
// destructor, or a second Ctrl-C, restores the terminal.
class LineInput {
 public:
  LineInput() : interactive_(::isatty(0) == 1 && ::tcgetattr(0, &before) == 0) {
    if (interactive_) cli::before_forced_end(&listen);
    be_quiet();
  }
  ~LineInput() {
    if (!interactive_) return;
    cli::before_forced_end(nullptr);
    listen();
  }
  LineInput(const LineInput&) = delete;
  LineInput& operator=(const LineInput&) = delete;

  // Whether standard input is a terminal.
  bool interactive() const noexcept { return interactive_; }

  // The next line; shows `prompt` at a terminal. None at the end of the input and after a signal.
  std::optional<std::string> next(const char* prompt) {
    std::string begun;
    if (interactive_) {
      take_typed();
      const auto line = typed_line();
      begun = line ? *line : std::exchange(typed_, std::string());
      std::printf("%s%s%s", prompt, observe::terminal_safe(begun).c_str(), line ? "\n" : "");
      std::fflush(stdout);
      if (line) return line;
      if (ended_) return std::nullopt;
      listen();
    }
    const auto rest = read_line();
    be_quiet();
    if (!rest) return std::nullopt;
    return begun + *rest;
  }

 private:
  // The next line of standard input; a signal ends the wait for it.
  std::optional<std::string> read_line() {
    std::size_t end = 0;
    char bytes[4096];
    while ((end = read_.find('\n')) == read_.npos) {
      pollfd ready = {0, POLLIN, 0};
      if (::poll(&ready, 1, -1) != 1) return std::nullopt;
      const auto size = ::read(0, bytes, sizeof bytes);
      if (size < 0 || (size == 0 && read_.empty())) return std::nullopt;
      if (size == 0) return std::exchange(read_, std::string());  // a last line without an end
      read_.append(bytes, static_cast<std::size_t>(size));
    }
    std::string line = read_.substr(0, end);
    read_.erase(0, end + 1);
    return line;
  }

  // Turns echo and line editing off. Ctrl-C still works, and does not discard typed text.
  void be_quiet() const {
    if (!interactive_) return;
    termios quiet = before;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHONL | ICANON);
    quiet.c_lflag |= NOFLSH;
    quiet.c_cc[VMIN] = 1;
    quiet.c_cc[VTIME] = 0;
    ::tcsetattr(0, TCSANOW, &quiet);
  }

  // Takes what was typed so far, and applies the editing keys, which the terminal does not handle
  // in quiet mode.
  void take_typed() {
    pollfd ready = {0, POLLIN, 0};
    while (!ended_ && ::poll(&ready, 1, 0) == 1 && (ready.revents & POLLIN) != 0) {
      char byte = 0;
      if (::read(0, &byte, 1) != 1) return;
      const bool begun = !typed_.empty() && typed_.back() != '\n';
      if (byte == static_cast<char>(before.c_cc[VEOF])) {
        ended_ = !begun;
      } else if (byte == static_cast<char>(before.c_cc[VERASE])) {
        while (!typed_.empty() && (typed_.back() & 0xc0) == 0x80)
          typed_.pop_back();
        if (begun && !typed_.empty() && typed_.back() != '\n') typed_.pop_back();
      } else if (byte == static_cast<char>(before.c_cc[VKILL])) {
        typed_.erase(typed_.rfind('\n') + 1);
      } else if (byte == '\n' || byte == '\t' || static_cast<unsigned char>(byte) >= 0x20) {
        typed_ += byte;
      }
    }
  }

  std::optional<std::string> typed_line() {
    const auto end = typed_.find('\n');
    if (end == typed_.npos) return std::nullopt;
    std::string line = typed_.substr(0, end);
    typed_.erase(0, end + 1);
    return line;
  }

  const bool interactive_;
  std::string read_;    // behind the last line that `read_line` returned
  std::string typed_;   // typed while the program computed, not yet used
  bool ended_ = false;  // Ctrl-D was typed
};

class Chat {
 public:
  Chat(cli::EngineHost& host,
       LineInput& input,
       cli::SamplingFlags sampling,
       const std::string& system)
      : host_(host), input_(input), sampling_(std::move(sampling)), system_(system) {
    reset();
  }

  Result<void> run() {
    const bool asks = input_.interactive();
    if (asks) std::printf("%s%s\n", host_.model_name().c_str(), ": /help lists commands");
    for (;;) {
      std::fflush(stdout);
      // A signal before the first request ends the program.
      const auto typed = cli::stop_requested() ? std::nullopt : input_.next("> ");
      if (!typed) {
        if (asks) std::fputc('\n', stdout);
        if (cli::stop_requested()) return fail(ErrorCode::kInterrupted, "interrupted");
        return {};
      }
      const std::string& line = *typed;
      if (line.empty()) continue;
      if (line[0] == '/') {
        if (line == "/quit" || line == "/exit") return {};
        command(line);
        continue;
      }
      TROUPE_TRY(answer(line));
    }
  }

 private:
  void reset() {
    messages_.clear();
    if (!system_.empty()) messages_.push_back({"system", system_});
  }

  void command(const std::string& line) {
    std::istringstream words(line);
    std::string name, key, value;
    words >> name >> key >> value;
    if (name == "/reset") {
      reset();
    } else if (name == "/system") {
      system_ = line.size() > 8 ? line.substr(8) : "";
      reset();
    } else if (name == "/params") {
      if (!key.empty()) change(key, value);
      show_params();
    } else {
      std::fputs(kChatCommands, stdout);
    }
  }

  // `/params temperature 0.7` is the flag --temperature 0.7.
  void change(const std::string& key, const std::string& value) {
    cli::SamplingFlags changed = sampling_;
    std::vector<cli::Flag> flags;
    changed.add_to(flags);
    const std::vector<std::string> words = {"--" + key, value};
    auto parsed = cli::parse_flags("/params: sampling", flags, words);
    if (!parsed) {
      std::printf("%s; /help lists the names\n",
                  parsed.error().message.substr(0, parsed.error().message.find(';')).c_str());
    } else if (*parsed == cli::FlagsOutcome::kRun) {
      sampling_ = std::move(changed);
    }
  }

  void show_params() const {
    std::printf(
        "temperature %g   top-p %g   top-k %ld   min-p %g   max-new-tokens %ld   seed %ld\n",
        sampling_.temperature, sampling_.top_p, sampling_.top_k, sampling_.min_p,
        sampling_.max_new_tokens, sampling_.seed);
  }

  // Answers one line. If the engine refuses the prompt (too long), drops the line; the dialogue
  // goes on.
  Result<void> answer(const std::string& line) {
    messages_.push_back({"user", line});
    TROUPE_TRY_ASSIGN(prompt, host_.encode_chat(messages_));
    engine::GroupRequest request;
    request.id.value = turn_;
    request.prompt = std::move(prompt);
    request.seed = core::derive_seed(static_cast<std::uint64_t>(sampling_.seed), turn_);
    request.sampling = sampling_.params();
    const core::GroupId id{turn_++};
    if (auto taken = host_.driver().submit(std::move(request)); !taken) {
      messages_.pop_back();
      std::fputs(cli::error_text(taken.error()).c_str(), stdout);
      return {};
    }
    StreamPrinter printer(host_.tokenizer(), ::isatty(1) == 1);
    TROUPE_TRY(stream(id, printer));
    TROUPE_TRY(printer.end());
    messages_.push_back({"assistant", printer.text()});
    return {};
  }

  Result<void> stream(core::GroupId id, StreamPrinter& printer) {
    engine::EngineDriver& driver = host_.driver();
    while (!driver.idle()) {
      if (cli::stop_requested()) {
        driver.abort(id);
        cli::clear_stop_request();
        return {};
      }
      TROUPE_TRY_ASSIGN(samples, driver.step());
      TROUPE_TRY(printer.show(samples.empty() ? driver.engine()->drawn(id, 0) : samples[0].tokens));
    }
    return {};
  }

  cli::EngineHost& host_;
  LineInput& input_;
  cli::SamplingFlags sampling_;
  std::string system_;
  std::vector<text::ChatMessage> messages_;
  std::uint64_t turn_ = 0;
};

}  // namespace

Result<void> run_chat(cli::Words words) {
  std::string model, system, dtype_name = "f32";
  cli::Placement placement;
  cli::SamplingFlags sampling;
  std::vector<cli::Flag> flags = {
      {"--model,model", &model, "Hugging Face folder or OWNER/NAME; may stand alone", true},
      {"--system", &system, "the system message"},
      {"--dtype", &dtype_name, cli::kDtypeHelp},
      {"--device", &placement.device, cli::kDeviceHelp},
      {"--threads", &placement.threads, "0 = all usable cores of the CPU", false, 0, 1024}};
  sampling.add_to(flags);
  TROUPE_TRY_ASSIGN(outcome,
                    cli::parse_flags("troupe chat: talk to a chat model; /help there lists "
                                     "commands",
                                     flags, words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  TROUPE_TRY_ASSIGN(dtype, cli::panel_dtype("troupe chat", dtype_name, placement.device));
  LineInput input;
  if (input.interactive()) {
    std::printf("loading %s ...\n", model.c_str());
    std::fflush(stdout);
  }
  TROUPE_TRY_ASSIGN(host, cli::EngineHost::load(model, placement, {}, dtype));
  return Chat(*host, input, std::move(sampling), system).run();
}

}  // namespace troupe::app
