import { findTwiceproofError } from "@twiceproof/core";

/**
 * What a page is told of an error of ours: `CODE: fixed text`, without input, key or address. Undefined for any other
 * error. For an `onError` of your own: `(error) => errorText(error) ?? "Something went wrong."`.
 */
export function errorText(error: unknown): string | undefined {
  const ours = findTwiceproofError(error);
  return ours && `${ours.code}: ${ours.message}`;
}

/** The SDK's own text for errors that it hides. */
export const hidden = "An error occurred.";
