#include "runtime/config/shell_script.hpp"

#include "runtime/config/refuse.hpp"
#include "runtime/config/shell_commands.hpp"
#include "runtime/core/limits.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace troupe::config {
namespace {

using core::Result;

bool is_in(char c, std::string_view set) {
  return set.find(c) != set.npos;
}

class ScriptReader {
 public:
  ScriptReader(std::string_view text, std::string_view where, ShellCommands made, int line = 1)
      : text_(text), where_(where), made_(std::move(made)), line_(line) {}

  Result<std::vector<ShellCommand>> all() {
    while (at_ < text_.size()) {
      TROUPE_TRY(step());
    }
    end_word();
    if (const int line = made_.open_array(); line > 0)
      return refuse(place(line), ": a ( has no ) after it");
    made_.end_command();
    return std::move(made_).done();
  }

 private:
  std::string place(int line) const { return joined(where_, ":", line); }
  bool next_is(std::string_view part) const { return text_.substr(at_).starts_with(part); }
  void pass(std::size_t count) {
    line_ += static_cast<int>(std::ranges::count(text_.substr(at_, count), '\n'));
    at_ += std::min(count, text_.size() - at_);
  }
  void add(const ShellText& part) {
    if (!open_) word_ = {{}, line_, {}};
    open_ = true;
    word_.text += part.text;
    if (word_.unknown.empty()) word_.unknown = part.unknown;
  }
  void add_and_pass(std::size_t begin, std::size_t count) {
    add(ShellText{std::string(text_.substr(at_ + begin, count)), {}});
    pass(begin + count);
  }

  // One piece outside quotes.
  Result<void> step() {
    const char c = text_[at_];
    if (next_is("\\\n") || next_is("\\\r\n")) return pass(next_is("\\\n") ? 2 : 3), Result<void>();
    if (c == '\\') return add_and_pass(1, 1), Result<void>();
    if (is_in(c, "'\"")) return quotes(c);
    if (is_in(c, "$`")) return dollar(false);
    if (c == '#' && !open_) {
      pass(std::min(text_.find('\n', at_), text_.size()) - at_);
    } else if (is_in(c, "<>") || next_is("&>")) {
      redirection();
    } else if (c == '(' && open_ && made_.begins_array(word_, quoted_)) {
      made_.begin_array(word_);
      open_ = false;
      pass(1);
    } else if (std::isspace(static_cast<unsigned char>(c)) != 0 || is_in(c, ";&|()")) {
      separator(c);
    } else {
      add_and_pass(0, 1);
    }
    return {};
  }

  void separator(char c) {
    end_word();
    if (c == ')' && made_.open_array() > 0) {
      made_.end_array();
    } else if (is_in(c, "\n;&|()")) {
      target_ = Target::kNone;
      made_.end_command();
    }
    pass(1);
    if (c == '\n') here_documents();
  }

  Result<void> quotes(char quote) {
    const int line = line_;
    add(ShellText{});
    quoted_ = true;
    pass(1);
    while (at_ < text_.size() && text_[at_] != quote) {
      if (quote == '"' && text_[at_] == '\\') {
        const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '"';
        if (next == '\n') {
          pass(2);
        } else {
          const std::size_t kept = is_in(next, "\"\\$`") ? 1 : 0;
          add_and_pass(kept, 2 - kept);
        }
      } else if (quote == '"' && is_in(text_[at_], "$`")) {
        TROUPE_TRY(dollar(true));
      } else {
        add_and_pass(0, 1);
      }
    }
    if (at_ == text_.size())
      return refuse(place(line), ": a ", std::string(1, quote), " has no end");
    pass(1);
    return {};
  }

  // The size of what is in brackets at `at_ + from`, which may hold others; npos: it has no end.
  std::size_t bracket_size(std::size_t from, char open, char close) const {
    int depth = 0;
    for (std::size_t i = at_ + from; i < text_.size(); ++i) {
      if (text_[i] == '\\') {
        ++i;
      } else if (text_[i] == open) {
        ++depth;
      } else if (text_[i] == close && --depth == 0) {
        return i + 1 - at_;
      }
    }
    return text_.npos;
  }

  // A $ or a ` and what belongs to it.
  Result<void> dollar(bool in_quotes) {
    const ShellVariables& variables = made_.variables();
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : ' ';
    const bool tick = text_[at_] == '`';
    std::size_t size = 2;
    if (tick) {
      const auto end = text_.find('`', at_ + 1);
      size = end == text_.npos ? end : end + 1 - at_;
    } else if (is_in(next, "({")) {
      size = bracket_size(1, next, next == '(' ? ')' : '}');
    } else if (const auto name = shell_name_in(text_.substr(at_ + 1)); is_shell_name(name)) {
      add(variables.value(name));
      pass(1 + name.size());
      return {};
    } else if (!is_in(next, "@*#?$!-0123456789")) {
      if (next == '\'' && !in_quotes) return pass(1), Result<void>();  // $'...'
      return add_and_pass(0, 1), Result<void>();
    }
    if (size == text_.npos) {
      return refuse(place(line_), ": a ", tick ? "`" : joined("$", std::string(1, next)),
                    " has no end");
    }
    const std::string whole(text_.substr(at_, size));
    if (!tick && next == '{') {
      take_braces(whole.substr(2, whole.size() - 3));
    } else if (whole.starts_with("$((") && whole.ends_with("))")) {
      add(variables.sum(std::string_view(whole).substr(3, whole.size() - 5)));
    } else {
      add(ShellText{whole, whole});
    }
    pass(size);
    return {};
  }

  // "${NAME[@]}": each item is a word of its own.
  void take_braces(const std::string& inside) {
    const std::string_view name = shell_name_in(inside);
    const std::string_view rest = std::string_view(inside).substr(name.size());
    const ShellVariable* const own = made_.variables().find(name);
    if (own == nullptr || (rest != "[@]" && rest != "[*]"))
      return add(made_.variables().braces(inside));
    for (std::size_t i = 0; i < own->words.size(); ++i) {
      if (i > 0) end_word();
      add(ShellText{own->words[i].text, own->words[i].unknown});
      word_.line = own->words[i].line;
      quoted_ = true;
    }
    if (own->words.empty()) open_ = false;
  }

  void redirection() {
    // 2>file: the number belongs to it.
    const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
    if (open_ && !quoted_ && std::ranges::all_of(word_.text, is_digit)) open_ = false;
    end_word();
    target_ = next_is("<<") && !next_is("<<<") ? Target::kDelimiter : Target::kFile;
    pass(std::min(text_.find_first_not_of("<>&-", at_), text_.size()) - at_);
  }

  // Behind the line in which they are announced. Their texts are scripts, too, when they read as
  // one.
  void here_documents() {
    for (const std::string& delimiter : std::exchange(delimiters_, {})) {
      const std::size_t begin = at_;
      const int line = line_;
      std::size_t end = text_.size();
      while (at_ < text_.size() && end == text_.size()) {
        const std::size_t from = at_;
        std::string_view one =
            text_.substr(at_, std::min(text_.find('\n', at_), text_.size()) - at_);
        pass(one.size() + 1);
        one.remove_prefix(std::min(one.find_first_not_of('\t'), one.size()));
        if (one == delimiter) end = from;
      }
      const std::string_view body = text_.substr(begin, end - begin);
      if (auto read = ScriptReader(body, where_, ShellCommands(made_.variables()), line).all())
        made_.take(std::move(*read));
    }
  }

  void end_word() {
    const bool quoted = std::exchange(quoted_, false);
    if (!std::exchange(open_, false)) return;
    const Target target = std::exchange(target_, Target::kNone);
    if (target == Target::kDelimiter) delimiters_.push_back(word_.text);
    if (target == Target::kNone) made_.add(word_, quoted);
  }

  // What the next word is: a part of the command, or of a redirection.
  enum class Target { kNone, kFile, kDelimiter };

  std::string_view text_;
  std::string_view where_;
  ShellCommands made_;
  std::size_t at_ = 0;
  int line_;
  ShellWord word_;
  bool open_ = false, quoted_ = false;  // of word_: begun; a part of it stood in quotes
  Target target_ = Target::kNone;
  std::vector<std::string> delimiters_;
};

}  // namespace

core::Result<std::vector<ShellCommand>> read_script(std::string_view text,
                                                    std::string_view where,
                                                    const Environment& environment) {
  if (text.size() > core::limits::kConfigFile_bytes_max)
    return refuse(where, ": too large for a script (", text.size(), " bytes)");
  if (text.find('\0') != text.npos)
    return refuse(where, ": is no text", kThen, "a shell script is expected");
  return ScriptReader(text, where, ShellCommands(ShellVariables(environment))).all();
}

}  // namespace troupe::config
