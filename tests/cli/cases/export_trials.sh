# Exporting trials to Optuna's journal and to TensorBoard.
. "$(dirname "$0")/../lib.sh"

toy one 4 '"tasks": 2, "choices": 2, "bounds": {"size_ratio": {"max": 0.06}}, "fail_at": 4'
sed -i 's/"tasks": 6, "choices": 3, //' one.json
mscgym search one.json --quiet >out 2>&1
mscgym export one/toy.jsonl --optuna one.journal && sed \
    -e 's/T[0-9:.]*+00:00"/T.."/g; s/"20[0-9-]*T/"20..T/g' \
    -e 's/"record":"[0-9a-f]*"/"record":".."/; s/"program":"[^"]*"/"program":".."/' \
    -e 's/"distributions":.*,"user_attrs"/"distributions":..,"user_attrs"/2g' one.journal

echo "== files"
try mscgym export one/toy.jsonl --optuna one.journal
echo '{"op_code":2,"worker_id":"another","study_id":0,"user_attr":{"mine":1}}' >>one.journal
try mscgym export one/toy.jsonl --optuna one.journal
tail -n 1 one.journal
try mscgym export one/toy.jsonl --optuna one/toy.jsonl
try mscgym export --model one.onnx --optuna one.journal
try mscgym export one/toy.jsonl --trial 2 --optuna new.journal
try mscgym export one/toy.jsonl
try mscgym export none.jsonl --tensorboard runs
try mscgym export one/toy.jsonl --tensorboard runs
ls runs runs/toy | sed 's/[0-9]\{10\}/N/'

echo "== while it searches"
toy two 12
try mscgym search two.json --quiet --log tensorboard:logs >out
tail -n 1 out
ls logs/toy | sed 's/[0-9]\{10\}/N/'
try mscgym search two.json --log wandb:logs
try mscgym search two.json --log tensorboard:
echo "== a place that cannot be written"
touch file
sed -i 's/"verbose": "error"/"verbose": "warn"/' two.json
try mscgym search two.json --trials 20 --log tensorboard:file 2>&1 |
    sed -n '/TensorBoard/p; /^trials/p; /^exit/p'
