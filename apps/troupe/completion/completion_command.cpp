// `troupe completion bash|zsh`: prints the script that completes command lines of `troupe` in a
// shell. The script asks the program itself for candidates (`troupe completion words -- ...`), so
// that it never is older than the program.
#include "apps/troupe/commands.hpp"
#include "apps/troupe/completion/candidates.hpp"

#include <cstdio>

namespace troupe::app {
namespace {

constexpr const char* kCompletionHelp =
    "usage: troupe completion bash|zsh\n"
    "\n"
    "Prints a script that completes commands, flags, keys, their words and file names.\n"
    "\n"
    "bash: source <(troupe completion bash)      in ~/.bashrc\n"
    "zsh:  source <(troupe completion zsh)       in ~/.zshrc, behind compinit; or as a file "
    "_troupe\n"
    "      in a folder of $fpath\n";

constexpr const char* kBash =
    R"script(# bash completion for troupe: source <(troupe completion bash)
_troupe() {
  local program=${COMP_WORDS[0]/#\~/$HOME} word=${COMP_WORDS[COMP_CWORD]} lines
  [[ $word == = ]] && word=
  mapfile -t lines < <("$program" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  COMPREPLY=("${lines[@]:1}")
  if [[ ${lines[0]-} == files ]]; then
    compopt -o filenames 2>/dev/null
    local file
    while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -f -- "$word")
  fi
}
complete -F _troupe troupe
)script";

constexpr const char* kZsh = R"script(#compdef troupe
# zsh completion for troupe: source <(troupe completion zsh), behind compinit
_troupe() {
  local program=${words[1]/#\~/$HOME}
  local -a lines
  lines=("${(@f)$("$program" completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  (( $#lines > 1 )) && compadd -- "${(@)lines[2,-1]}"
  [[ ${lines[1]} == files ]] && _files
}
if [[ ${funcstack[1]} == _troupe ]]; then _troupe "$@"; else compdef _troupe troupe; fi
)script";

// One line that says whether files may stand there, then the candidates.
Result<void> print_words(cli::Words words) {
  const Candidates found = candidates_for(words);
  std::string text = found.files ? "files\n" : "words\n";
  for (const std::string& word : found.words)
    text += word + "\n";
  std::fputs(text.c_str(), stdout);
  return {};
}

}  // namespace

Result<void> run_completion(cli::Words words) {
  if (words.size() > 1 && words[0] == "words" && words[1] == "--")
    return print_words(words.subspan(2));
  if (words.empty() || cli::wants_help(words)) {
    std::fputs(kCompletionHelp, stdout);
    return {};
  }
  if (words.size() > 1) {
    return fail(ErrorCode::kConfig,
                "troupe completion: one shell is expected, and '" + words[1] + "' stands behind it",
                "give bash or zsh alone");
  }
  if (words[0] != "bash" && words[0] != "zsh") {
    return fail(ErrorCode::kConfig, "there is no completion for '" + words[0] + "'",
                "choose bash or zsh");
  }
  std::fputs(words[0] == "bash" ? kBash : kZsh, stdout);
  return {};
}

}  // namespace troupe::app
