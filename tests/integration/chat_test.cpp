// `troupe chat` at a terminal: what is seen while it loads and answers, and what becomes of keys
// that are pressed meanwhile.
#include "serve_support.hpp"

#include <poll.h>
#include <pty.h>
#include <sys/prctl.h>
#include <termios.h>

#include <algorithm>

namespace troupe::test {
namespace {

// A program at a terminal of its own; all that stands on its screen, in order.
class Terminal {
 public:
  explicit Terminal(std::vector<std::string> words) {
    std::vector<char*> argv;
    for (auto& word : words)
      argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_ = ::forkpty(&fd_, nullptr, nullptr, nullptr);
    if (pid_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  ~Terminal() {
    if (!ended_) ::kill(pid_, SIGKILL);
    if (!ended_) ::waitpid(pid_, nullptr, 0);
    ::close(fd_);
  }
  void type(const std::string& keys) const {
    EXPECT_EQ(::write(fd_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  // Waits until `part` is seen behind the first `from` bytes.
  bool shows(const std::string& part, std::size_t from = 0) {
    while (screen_.find(part, from) == screen_.npos && more()) {
    }
    return screen_.find(part, from) != screen_.npos;
  }
  bool shows_more_than(std::size_t bytes) {
    while (screen_.size() <= bytes && more()) {
    }
    return screen_.size() > bytes;
  }
  std::optional<int> ends() {
    while (more()) {
    }
    int status = 0;
    ended_ = within(30, [&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; });
    return ended_ && WIFEXITED(status) ? std::optional(WEXITSTATUS(status)) : std::nullopt;
  }
  bool echoes() const {
    termios now = {};
    return ::tcgetattr(fd_, &now) == 0 && (now.c_lflag & ECHO) != 0 && (now.c_lflag & ICANON) != 0;
  }
  const std::string& screen() const { return screen_; }
  std::size_t count(const std::string& part) const {
    std::size_t found = 0;
    for (auto at = screen_.find(part); at != screen_.npos; at = screen_.find(part, at + 1))
      ++found;
    return found;
  }

 private:
  bool more() {
    pollfd ready = {fd_, POLLIN, 0};
    char bytes[4096];
    if (::poll(&ready, 1, 60'000) != 1) return false;
    const auto size = ::read(fd_, bytes, sizeof bytes);
    if (size <= 0) return false;  // EIO: the program is gone
    screen_.append(bytes, static_cast<std::size_t>(size));
    return true;
  }

  pid_t pid_ = -1;
  int fd_ = -1;
  bool ended_ = false;
  std::string screen_;
};

}  // namespace

TEST(Chat, SaysThatItLoadsAndKeepsKeysOutOfItsAnswers) {
  const ScratchFolder folder;
  // The likeliest token is never the end: an answer goes on until it is stopped.
  const std::string model = make_model(folder, long_tiny_spec(), [](model::ParamStore& params) {
    const auto head = params.view("lm_head.weight");
    std::fill(head.end() - long_tiny_spec().hidden, head.end(), 0.0f);
  });
  std::ofstream(std::filesystem::path(model) / "tokenizer_config.json")
      << R"({"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|end|>",)"
         R"( "chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"})";
  Terminal chat({troupe_program(), "chat", model, "--threads", "1", "--temperature", "0",
                 "--max-new-tokens", "60000"});
  // Before the model is there: a line that is taken at the first prompt.
  ASSERT_TRUE(chat.shows("loading " + model + " ...\r\n")) << chat.screen();
  chat.type("first\n");
  ASSERT_TRUE(chat.shows("> first\r\n")) << chat.screen();
  ASSERT_TRUE(chat.shows_more_than(chat.screen().size())) << chat.screen();
  // While it answers: a whole line, edited, and the beginning of one.
  chat.type("/helk\x7fp\n/qui");
  const std::size_t answered = chat.screen().size();
  ASSERT_TRUE(chat.shows_more_than(answered + 16)) << chat.screen();
  EXPECT_FALSE(chat.echoes());
  chat.type("\x03");
  ASSERT_TRUE(chat.shows("> /help\r\n", answered)) << chat.screen();
  ASSERT_TRUE(chat.shows("> /qui", answered)) << chat.screen();
  EXPECT_NE(chat.screen().find("/quit or /exit ends\r\n", answered), std::string::npos);
  EXPECT_EQ(chat.count("first"), 1u) << chat.screen();
  EXPECT_EQ(chat.count("/help"), 2u) << "in the greeting and at its prompt: " << chat.screen();
  EXPECT_EQ(chat.count("/helk"), 0u) << chat.screen();
  ASSERT_TRUE(within(20, [&] { return chat.echoes(); }));
  chat.type("t\n");
  EXPECT_EQ(chat.ends(), 0) << chat.screen();
  EXPECT_TRUE(chat.echoes()) << "the terminal is as it was";
}

}  // namespace troupe::test
