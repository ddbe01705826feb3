// `troupe ca init`: makes a certificate authority for one run, and says what to do with its files.
#include "apps/cli/flags.hpp"
#include "apps/troupe/commands.hpp"
#include "runtime/core/split.hpp"
#include "runtime/net/run_ca.hpp"

#include <cstdio>

namespace troupe::app {
namespace {

constexpr const char* kUsage = "usage: troupe ca init --out DIR [--days N] [--hosts a,b]\n";

}  // namespace

Result<void> run_ca(cli::Words words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h") {
    std::fputs(kUsage, stdout);
    return {};
  }
  if (words[0] != "init") {
    return fail(ErrorCode::kConfig, "there is no 'troupe ca " + words[0] + "'",
                "use troupe ca init");
  }
  std::string out, hosts;
  std::int64_t days = 30;
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags(
          "troupe ca init: make a CA for one run and the certificate that its nodes share",
          {{"--out", &out, "folder to write to", true},
           {"--days", &days, "days that both certificates are valid", false, 1, 3650},
           {"--hosts", &hosts, "names and addresses of the gateways, with commas; none: any"}},
          words.subspan(1)));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  net::RunCaOptions options;
  options.folder = out;
  options.days = static_cast<int>(days);
  if (!hosts.empty()) {
    for (const std::string_view host : core::split(hosts, ","))
      options.hosts.emplace_back(host);
  }
  TROUPE_TRY(net::make_run_ca(options));
  std::printf(
      "%s/ca.crt    copy to every node\n"
      "%s/node.crt  copy to every node\n"
      "%s/node.key  copy to every node over a channel you trust (scp -p); mode 600 there too\n"
      "%s/ca.key    keep here or delete it: with it anybody makes nodes of this run\n"
      "They hold for %ld days%s%s.\n",
      out.c_str(), out.c_str(), out.c_str(), out.c_str(), days,
      hosts.empty() ? "" : "; gateways are reached as ", hosts.c_str());
  return {};
}

}  // namespace troupe::app
