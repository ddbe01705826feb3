"""Makes the small tables of this folder, by pyarrow (environment `oracle`): python make.py"""

import gzip
import pathlib

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.ipc as ipc
import pyarrow.parquet as parquet

HERE = pathlib.Path(__file__).parent
ROWS = pa.table({
    "input": ["2+3=", "4+4=", "1+0="],
    "output": ["5", "8", None],
    "messages": [[{"role": "user", "content": "hi", "tool_calls": None}],
                 [{"role": "user", "content": "x", "tool_calls": ["f"]}], []],
    "score": pa.array([0.5, 1.0, None], pa.float32()),
})
LINES = """{"input":"2+3=","output":"5","messages":[{"role":"user","content":"hi"}],"score":0.5}
{"input":"4+4=","output":"8","messages":[{"role":"user","content":"x","tool_calls":["f"]}],"score":1.0}
{"input":"1+0=","messages":[]}
"""

parquet.write_table(ROWS, HERE / "rows.parquet", row_group_size=2, compression="zstd")
feather.write_feather(ROWS, str(HERE / "rows.feather"), compression="lz4")
with ipc.new_stream(str(HERE / "rows.arrow"), ROWS.schema) as stream:
    stream.write_table(ROWS, max_chunksize=1)
(HERE / "rows.jsonl").write_text(LINES)
(HERE / "rows.jsonl.gz").write_bytes(gzip.compress(LINES.encode(), mtime=0))
with pa.CompressedOutputStream(str(HERE / "rows.jsonl.zst"), "zstd") as out:
    out.write(LINES.encode())
bad = pa.table({"a": [1.0, 2.0, float("nan")]})
parquet.write_table(bad, HERE / "nan.parquet")
