"""Every kernel has a slow twin, and a test that runs the two side by side."""

from __future__ import annotations

import ast
from typing import NamedTuple

from tests.house.sources import ROOT, Module, product_modules, sample


class Proof(NamedTuple):
    """`twin` is `module.function` of tests/naive; `test` a module of tests/properties that runs both."""

    twin: str
    test: str


PROOFS = {
    "crc32c_range": Proof("checksum.crc32c", "test_kernel_crc32c"),
    "scan_batches": Proof("batch.scan", "test_kernel_scan"),
    "check_batches": Proof("batch.checked", "test_kernel_scan"),
    "decode_records": Proof("record.read_plain", "test_kernel_decode"),
    "decompress_plain_streams": Proof("lz4.decode_frame", "test_kernel_streams"),
    "measure_batches": Proof("building.split", "test_kernel_encode"),
    "encode_batches": Proof("building.batch_bytes", "test_kernel_encode"),
    "write_headers": Proof("building.batch_bytes", "test_kernel_encode"),
    "append_request": Proof("append.prepared", "test_kernel_append"),
    "finish_append": Proof("append.committed", "test_kernel_append"),
    "encode_headers": Proof("record_headers.encode", "test_kernel_headers"),
    "decode_headers": Proof("record_headers.decode", "test_kernel_headers"),
    "gather_fields": Proof("gather.gathered", "test_kernel_gather"),
    "write_record_views": Proof("gather.views", "test_kernel_gather"),
    "dump_records": Proof("dump_text.decoded", "test_kernel_dump"),
    "dump_batches": Proof("dump_text.dump", "test_kernel_dump"),
    "fill_lines": Proof("fill.filled", "test_kernel_fill"),
    "note_forms": Proof("fill.form", "test_kernel_fill"),
    "fold_indexes": Proof("fold_indexes.add_batches", "test_fold_indexes"),
    "fold_producers": Proof("fold_producers.replay", "test_fold_producers"),
    "apply_updates": Proof("fold_producers.commit", "test_fold_producers"),
    "index_entries": Proof("fold_producers.rows_by_producer", "test_fold_producers"),
    "decode_batches": Proof("record.read_plain", "test_kernel_cleaning"),
    "decode_tail": Proof("record.read_plain", "test_kernel_tail"),
    "hash_keys": Proof("offset_map.halves", "test_kernel_cleaning"),
    "murmur2_key": Proof("murmur2.murmur2", "test_kernel_murmur2"),
    "murmur2_keys": Proof("murmur2.murmur2", "test_kernel_murmur2"),
    "put_offsets": Proof("offset_map.put", "test_kernel_cleaning"),
    "find_offsets": Proof("offset_map.find", "test_kernel_cleaning"),
}
CALLERS = {  # through which tests call some kernels, by a name that is imported from them
    "DumpCaller": "tests/support/kernel_dump.py",
    "both_forms": "tests/properties/fold_stories.py",
    "DecodedBatch": "tests/support/kernel_decode.py",
    "decoded_batches": "tests/support/kernel_decode.py",
    "TopicForms": "tests/support/append_forms.py",
}


def kernels(modules: tuple[Module, ...]) -> set[str]:
    """Names of the functions that are decorated as kernels."""
    functions = [node for module in modules for node in ast.walk(module.tree) if isinstance(node, ast.FunctionDef)]
    return {node.name for node in functions if "kernel" in map(_called_name, node.decorator_list)}


def _called_name(node: ast.expr) -> str | None:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None


def mentioned(source: str) -> set[str]:
    """Names and last names that the code of a module uses."""
    nodes = list(ast.walk(ast.parse(source)))
    return {node.id for node in nodes if isinstance(node, ast.Name)} | {
        node.attr for node in nodes if isinstance(node, ast.Attribute)
    }


def unproven(kernel: str, proof: Proof, test: str, caller: str, twins: str) -> list[str]:
    """What is missing, given the sources of the modules that should have it."""
    twin = proof.twin.rpartition(".")[2]
    found = []
    if twin not in {node.name for node in ast.parse(twins).body if isinstance(node, ast.FunctionDef)}:
        found.append(f"{kernel}: there is no {proof.twin}")
    if twin not in mentioned(test):
        found.append(f"{kernel}: {proof.test} does not ask {proof.twin}")
    if kernel not in mentioned(test) | mentioned(caller):
        found.append(f"{kernel}: {proof.test} does not run it")
    return found


def test_every_kernel_is_in_the_table_and_nothing_else() -> None:
    assert kernels(product_modules()) == PROOFS.keys()


def test_every_kernel_has_a_twin_and_a_test() -> None:
    missing = []
    for kernel, proof in PROOFS.items():
        test = (ROOT / "tests" / "properties" / f"{proof.test}.py").read_text()
        twins = (ROOT / "tests" / "naive" / f"{proof.twin.partition('.')[0]}.py").read_text()
        caller = "\n".join((ROOT / path).read_text() for name, path in CALLERS.items() if name in mentioned(test))
        missing += unproven(kernel, proof, test, caller, twins)
    assert missing == []


def test_twins_import_nothing_of_logstore() -> None:
    builders = [ROOT / "tests" / "support" / name for name in ("dice.py", "encoder.py")]  # which twins are made of
    paths = [*builders, *(ROOT / "tests" / "naive").glob("*.py")]
    assert len(paths) > len(builders)
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not [name for name in names if name.startswith("logstore")], path.name


def test_a_kernel_that_is_not_in_the_table_is_caught() -> None:
    source = '@kernel("i64")\ndef sneaked_in(x):\n    return x\n\n@device\ndef part(x):\n    return x\n'
    assert kernels((sample("logstore.kernels.new", source),)) == {"sneaked_in"}


def test_a_kernel_without_twin_or_test_is_caught() -> None:
    proof = Proof("checksum.slow", "test_kernel_new")
    twins, test = "def slow(): pass", "def test_it():\n    assert fast() == checksum.slow()"
    assert unproven("fast", proof, test, "", twins) == []
    assert unproven("fast", proof, test, "", "slow = None") == ["fast: there is no checksum.slow"]
    assert len(unproven("fast", proof, "def test_it():\n    assert fast()", "", twins)) == 1
    assert len(unproven("fast", proof, "def test_it():\n    assert slow()", "", twins)) == 1
