# Models in GGUF: read as decoders, searched with llama.cpp's types, resumed, and written as GGUF and
# as a list for llama-quantize.
. "$(dirname "$0")/../lib.sh"
model=$FILES/../../data/files/llama.gguf
cp "$model" llama.gguf
cp "$FILES"/../../data/files/importance*.* .
jq -cn '[range(400) | . * . % 47]' >ids.jsonl

echo "- weights have the names of the file"
mscgym graph llama.gguf --sites | grep '^weight' | sed 's/   */  /g'

echo "- a search with types of GGUF under a bound on the size"
cat >search.json <<EOF
{"model": "llama.gguf", "workspace": "w",
 "dataset": {"inputs": "ids.jsonl", "sequence": 16, "samples": 16, "labels": "next"},
 "quantize": {"target": "generic", "gym": [{
    "env": {"loss": "kl", "loss_tensors": ["logits"],
            "choices": [{"type": "q8_0"}, {"type": "q5_0"}, {"type": "q4_k"}, {"type": "q4_0", "rounding": "descent"},
                        {"type": "float16"}],
            "bounds": {"size_bytes": {"max": 50000}}},
    "budget": {"trials": 12}, "parallel": 4}]}}
EOF
mscgym search search.json --quiet --json 2>said.txt >report.json || cat said.txt
jq -c '.[0].winner | [.state, .metrics.size_bytes <= 50000]' report.json
mscgym show w/*.jsonl --canonical >whole.jsonl
cp w/msc_quantize.json whole.json

echo "- resumed, it is the same"
for lines in 1 4 9; do
    head -n $lines w/quantize_0.jsonl >cut && mv cut w/quantize_0.jsonl
    mscgym resume w/quantize_0.jsonl --quiet >out.txt 2>&1 || cat out.txt
    mscgym show w/quantize_0.jsonl --canonical | cmp - whole.jsonl && cmp w/msc_quantize.json whole.json && echo same
done
mscgym verify w/quantize_0.jsonl --quiet 2>/dev/null | tail -n 1

echo "- the exported file has the values that were measured, and as many bytes as was said"
mscgym export w/quantize_0.jsonl -o small.gguf --tensor-types types.txt 2>&1 | grep -v "^input\|^memory" >bytes.txt
jq -r '.[0].winner | "tensors: \(.metrics.size_bytes) bytes"' report.json | diff - bytes.txt && echo same bytes
mscgym run small.gguf --input input_ids="$FILES/../../data/files/gguf_ids.npy" --output a >out.txt 2>&1 || cat out.txt
mscgym run llama.gguf --strategy w/msc_quantize.json --input input_ids="$FILES/../../data/files/gguf_ids.npy" --output b >out.txt 2>&1 || cat out.txt
close a/logits.npy b/logits.npy && echo same logits
sed 's/=.*/=TYPE/' types.txt
mscgym export --model llama.gguf --strategy w/msc_quantize.json -o again.gguf | diff - bytes.txt && cmp again.gguf small.gguf && echo same file
mscgym export --model llama.gguf -o plain.gguf
mscgym run plain.gguf --input input_ids="$FILES/../../data/files/gguf_ids.npy" --output c >out.txt 2>&1
mscgym run llama.gguf --input input_ids="$FILES/../../data/files/gguf_ids.npy" --output d >out.txt 2>&1
cmp c/logits.npy d/logits.npy && echo same logits

echo "- importance of llama.cpp, in both forms"
for form in gguf dat large; do
    file=importance.$form
    [ $form != large ] || file=importance_large.dat
    jq -c --arg f $file '.quantize.gym[0].env += {imatrix: $f, choices: [{type: "q4_0"}, {bits: 4, group_size: 32, observer: "hessian"}]} |
        .workspace = "i" | del(.quantize.gym[0].env.bounds) | .quantize.gym[0].budget.trials = 0' search.json >importance.json
    rm -rf i && mscgym search importance.json --quiet >out.txt 2>&1 || cat out.txt
    grep -c baseline i/quantize_0.jsonl
    mscgym show i/quantize_0.jsonl --json | jq -c '[.. | .distill_loss? // empty]' >"loss_$form"
done
cmp loss_gguf loss_dat && cmp loss_gguf loss_large && echo same losses
jq -c 'del(.quantize.gym[0].env.imatrix) | .workspace = "j"' importance.json >option.json
mkdir elsewhere && (cd elsewhere && mscgym search ../option.json --imatrix ../importance.gguf --quiet >out.txt 2>&1 || cat out.txt)
jq -r 'select(.kind == "header") | .config.quantize.gym[0].env.imatrix' j/quantize_0.jsonl
mscgym show j/quantize_0.jsonl --json | jq -c '[.. | .distill_loss? // empty]' | cmp - loss_gguf && echo same losses
mscgym resume j/quantize_0.jsonl --trials 2 --quiet >out.txt 2>&1 || cat out.txt
cp importance.gguf kept.gguf && cp importance.dat importance.gguf
mscgym resume j/quantize_0.jsonl --trials 3 --quiet 2>&1 | grep ^mscgym
mv kept.gguf importance.gguf
mscgym resume j/quantize_0.jsonl --trials 3 --quiet >out.txt 2>&1 || cat out.txt
quantize() {
    mscgym quantize llama.gguf --inputs ids.jsonl --sequence 16 --threads 1 "$@" >out.txt 2>&1 || cat out.txt
}
quantize -o measured.onnx
quantize -o imatrix.onnx --imatrix importance.gguf
cmp -s measured.onnx imatrix.onnx || echo "another model by importance"
quantize -o imatrix.onnx --imatrix no.gguf

echo "- errors"
fails() {
    jq -c "$1" search.json >bad.json
    mscgym search bad.json --restart 2>&1 | grep ^mscgym
}
fails '.quantize.gym[0].env.choices = [{type: "q4_2"}]'
fails '.quantize.gym[0].env.choices = [{type: "q4_k", bits: 4}]'
fails '.quantize.gym[0].env.choices = [{type: "q4_k", observer: "minmax"}]'
fails '.quantize.gym[0].env.choices = [{type: "q4_k"}]'
fails '.quantize.gym[0].env.activations = {}'
fails '.quantize.gym[0].env.fix = {"token_embd.weight": "q4_k"}'
fails '.quantize.gym[0].env.imatrix = "no.gguf"'
fails '.quantize.gym[0].env.imatrix = "llama.gguf"'
fails '.quantize.target = "openvino"'
printf '\1\0\0\0\25\0\0\0blk.0.ffn_down.weight\1\0\0\0\2\0\0\0\0\0\200\77\0\0\200\77' >other.dat
fails '.quantize.gym[0].env.imatrix = "other.dat"'
mscgym export --model "$FILES/tiny.onnx" -o tiny.gguf 2>&1 | sed "s|$FILES|FILES|g"
mscgym export --model llama.gguf -o search.json 2>&1
mscgym quantize llama.gguf --inputs "$FILES/../../data/files/gguf_ids.npy" --sequence 8 -o new.gguf 2>&1
jq '(.edits[] | select(.tensor == "blk.0.attn_q.weight") | .axis) = 0' w/msc_quantize.json >axis.json
mscgym export --model llama.gguf --strategy axis.json -o axis.gguf 2>&1
ls axis.gguf 2>/dev/null
mscgym export --model llama.gguf --tensor-types search.json 2>&1
head -c 5000 llama.gguf >cut.gguf && mscgym graph cut.gguf 2>&1
true
