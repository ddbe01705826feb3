// `troupe bench http`: calls of the HTTP client to a server of Python's standard library, as a
// reward or a judge of one's own is often written, by how many connections its queue holds. Each
// caller has one call under way; the server waits `--wait-ms` before it answers, so the limit is
// callers over that time. A client that made a connection for each call would meet the full queue
// of 5.
#include "apps/bench/bench.hpp"
#include "apps/bench/figures.hpp"
#include "apps/bench/logged_process.hpp"
#include "apps/bench/temporary_folder.hpp"
#include "apps/cli/flags.hpp"
#include "apps/cli/system_facts.hpp"
#include "runtime/async/io_threads.hpp"
#include "runtime/async/scope.hpp"
#include "runtime/net/http_client.hpp"

#include <fstream>

namespace troupe::bench {
namespace {

constexpr const char* kServer = R"PY(
import http.server, sys, time

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(float(sys.argv[2]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"[]")

    def log_message(self, *args):
        pass

class Server(http.server.ThreadingHTTPServer):
    request_queue_size = int(sys.argv[1])

server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
)PY";

struct HttpJob {
  std::int64_t calls = 640, callers = 64;
  double wait_ms = 20;
};

struct Backlog {
  double calls_per_s = 0;
  std::uint64_t connections = 0;
};

async::task<Result<void>> caller(net::HttpClient* client, std::string url, std::int64_t calls) {
  for (std::int64_t i = 0; i < calls; ++i) {
    TROUPE_CO_TRY_ASSIGN(reply,
                         co_await client->post_json(url, "[]", std::chrono::seconds(60), {}));
    if (reply.status != 200) {
      co_return fail(ErrorCode::kData,
                     "the server answered status " + std::to_string(reply.status));
    }
  }
  co_return Result<void>();
}

async::task<Result<void>> all_callers(net::HttpClient* client,
                                      std::string url,
                                      const HttpJob* job) {
  std::vector<async::task<Result<void>>> all;
  for (std::int64_t i = 0; i < job->callers; ++i)
    all.push_back(caller(client, url, job->calls / job->callers));
  auto done = co_await async::all(std::move(all));
  co_return done;
}

Result<Backlog> measure_backlog(const HttpJob& job, int backlog) {
  TROUPE_TRY_ASSIGN(folder, TemporaryFolder::make("troupe_bench_http"));
  const auto script = folder.path() / "server.py", log = folder.path() / "server.log";
  std::ofstream(script) << kServer;
  TROUPE_TRY_ASSIGN(server, LoggedProcess::start("python3",
                                                 {script.string(), std::to_string(backlog),
                                                  std::to_string(job.wait_ms / 1000)},
                                                 log));
  const auto listens = [&] { return server.output().find('\n') != std::string::npos; };
  if (!holds_within(30, listens))
    return fail(ErrorCode::kPeerLost, "Python's server does not start: " + server.output());
  const std::string output = server.output();
  const std::string url = "http://127.0.0.1:" + output.substr(0, output.find('\n')) + "/";
  async::IoThreads io(1);
  std::vector<double> rates;
  Backlog result;
  for (int round = 0; round < kRepetitions; ++round) {
    net::HttpClient client;
    const Stopwatch watch;
    TROUPE_TRY(io.run(all_callers(&client, url, &job)));
    rates.push_back(static_cast<double>(job.calls) / watch.seconds());
    result.connections = std::max(result.connections, client.connections_opened());
  }
  result.calls_per_s = median(rates);
  return result;
}

}  // namespace

Result<void> bench_http(cli::Words words) {
  HttpJob job;
  bool as_json = false;
  TROUPE_TRY_ASSIGN(
      outcome,
      cli::parse_flags(
          "troupe bench http: calls of a Python server by its backlog, medians of 3 rounds",
          {{"--calls", &job.calls, "calls in a round", false, 1, 1 << 20},
           {"--callers", &job.callers, "calls under way at once", false, 1, 256},
           {"--wait-ms", &job.wait_ms, "time before the server answers", false, 0, 10000},
           {"--json", &as_json, "one JSON line"}},
          words));
  if (outcome == cli::FlagsOutcome::kHelpShown) return {};
  job.calls = std::max(job.calls / job.callers, std::int64_t{1}) * job.callers;
  TROUPE_TRY_ASSIGN(small, measure_backlog(job, 5));
  TROUPE_TRY_ASSIGN(large, measure_backlog(job, 128));
  const double limit = 1000.0 * static_cast<double>(job.callers) / std::max(job.wait_ms, 1e-3);
  print_figures(nlohmann::ordered_json{{"bench", "http"},
                                       {"processor", cli::processor_name()},
                                       {"calls", job.calls},
                                       {"callers", job.callers},
                                       {"wait_ms", job.wait_ms},
                                       {"connections", small.connections},
                                       {"calls_per_s_backlog_5", small.calls_per_s},
                                       {"calls_per_s_backlog_128", large.calls_per_s},
                                       {"time_ratio", large.calls_per_s / small.calls_per_s},
                                       {"share_of_limit", small.calls_per_s / limit}},
                as_json);
  return {};
}

}  // namespace troupe::bench
