import * as fs from "node:fs";
import { afterEach, expect, it, vi } from "vitest";
import { effect, rejection, scratchFile, storeOf, win } from "./scratch.ts";

// No network share can be mounted for a test: the operating system's answer about the path is the only thing replaced.
vi.mock("node:fs", async (original) => {
  const real = await original<typeof import("node:fs")>();
  return { ...real, statfsSync: vi.fn(real.statfsSync) };
});

const real = fs.statfsSync("/");
afterEach(() => vi.mocked(fs.statfsSync).mockReset());

it.each([
  ["NFS", 0x6969],
  ["SMB", 0x517b],
  ["CIFS", 0xff534d42],
  ["CIFS", 0xff534d42 | 0],
  ["9p", 0x01021997],
  ["AFS", 0x5346414f],
])("refuses %s (%i), and leaves nothing there", async (name, type) => {
  vi.mocked(fs.statfsSync).mockReturnValue({ ...real, type } as never);
  const file = scratchFile();
  expect(await rejection(storeOf(file).claim([effect("order:1")]))).toMatchObject({
    code: "STORE_NETWORK_PATH",
    message: expect.not.stringContaining(file),
    help: expect.stringContaining(name),
  });
  expect(fs.existsSync(file)).toBe(false);
});

it("takes a local disk", async () => {
  expect((await win(storeOf(scratchFile()), effect("order:1"))).token).toBe(1);
});
