import js from '@eslint/js';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  // The app with TypeORM is compiled where that is installed.
  {
    ignores: [
      '**/dist/',
      'node_modules/',
      'coverage/',
      'test/consumers/typeorm/',
      'test/consumers/rolling-move/',
      'test/consumers/opentelemetry/',
    ],
  },
  js.configs.recommended,
  {
    files: ['**/*.{ts,tsx}'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      '@typescript-eslint/prefer-promise-reject-errors': 'off', // a wait rejects with the caller's own reason, whatever it is
      '@typescript-eslint/only-throw-error': ['error', { allowThrowingUnknown: true }],
      '@typescript-eslint/require-await': 'off', // a store answers with promises, also where it need not wait
    },
  },
  {
    files: ['lib/**/*.ts', 'lib-page/**/*.{ts,tsx}'],
    rules: { 'no-console': 'error', 'max-lines': ['error', { max: 250, skipBlankLines: true, skipComments: true }] },
  },
  {
    files: ['lib/**/*.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          paths: ['node:process', 'process'].map((name) => ({
            name,
            message: 'Use the global "process": to import it takes 1.5 ms at the start of each app.',
          })),
        },
      ],
    },
  },
  {
    files: ['sample-app/**/*.ts', 'test/**/*.ts'],
    rules: {
      // Nest reads constructor types at run time, so those imports are not types only.
      '@typescript-eslint/consistent-type-imports': 'off',
      '@typescript-eslint/no-floating-promises': [
        'error',
        { allowForKnownSafeCalls: [{ from: 'package', package: '@jest/globals', name: ['test', 'it', 'describe'] }] },
      ],
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: false }],
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
    },
  },
  {
    files: ['sample-app/src/**/*.js'],
    languageOptions: {
      globals: {
        document: 'readonly',
        performance: 'readonly',
        EventSource: 'readonly',
        fetch: 'readonly',
        setTimeout: 'readonly',
      },
    },
  },
  {
    files: ['**/*.{js,mjs}'],
    languageOptions: {
      globals: {
        process: 'readonly',
        console: 'readonly',
        setTimeout: 'readonly',
        clearTimeout: 'readonly',
        URL: 'readonly',
        fetch: 'readonly',
      },
    },
  },
);
